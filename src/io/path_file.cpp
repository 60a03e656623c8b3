#include "attsvm/files.h"

namespace attsvm {
namespace {

template <class Member>
Array numbers(const std::vector<PathPoint>& points, Member member) {
  std::vector<double> list;
  list.reserve(points.size());
  for (const PathPoint& point : points) list.push_back(static_cast<double>(point.*member));
  return Array::own(std::move(list), {static_cast<Index>(points.size())});
}

template <class Member>
Array matrices(const std::vector<PathPoint>& points, Member member) {
  std::vector<double> list;
  for (const PathPoint& point : points) {
    const auto& matrix = point.*member;
    list.insert(list.end(), matrix.data(), matrix.data() + matrix.size());
  }
  const auto& first = points.front().*member;
  return Array::own(std::move(list), {static_cast<Index>(points.size()), first.rows(), first.cols()});
}

}  // namespace

NamedArrays path_arrays(const std::vector<PathPoint>& points) {
  const auto count = static_cast<Index>(points.size());
  std::vector<Index> selected, minima, relaxed;
  std::vector<bool> inside;
  for (const PathPoint& point : points) {
    selected.insert(selected.end(), point.selected.begin(), point.selected.end());
    minima.push_back(point.minima);
    relaxed.push_back(point.relaxed);
    inside.push_back(point.inside);
  }
  const Index queries = count > 0 ? static_cast<Index>(points.front().selected.size()) : 0;
  NamedArrays arrays{{"radius", numbers(points, &PathPoint::radius)},
                     {"loss", numbers(points, &PathPoint::loss)},
                     {"log_loss", numbers(points, &PathPoint::log_loss)},
                     {"norm", numbers(points, &PathPoint::norm)},
                     {"stationarity", numbers(points, &PathPoint::stationarity)},
                     {"inside", Array::own(inside, {count})},
                     {"minima", Array::own(std::move(minima), {count})},
                     {"selected", Array::own(std::move(selected), {count, queries})},
                     {"correlation", numbers(points, &PathPoint::correlation)},
                     {"W", matrices(points, &PathPoint::W)}};
  if (points.front().K.size() > 0) {
    arrays.emplace_back("K", matrices(points, &PathPoint::K));
    arrays.emplace_back("Q", matrices(points, &PathPoint::Q));
  }
  if (points.front().v.size() > 0) {
    arrays.emplace_back("v", matrices(points, &PathPoint::v));
    arrays.emplace_back("head_norm", numbers(points, &PathPoint::head_norm));
    arrays.emplace_back("head_correlation", numbers(points, &PathPoint::head_correlation));
    arrays.emplace_back("relaxed", Array::own(std::move(relaxed), {count}));
  }
  return arrays;
}

void save_path(const std::string& path, const std::vector<PathPoint>& points, bool replace) {
  write_npz(path, path_arrays(points), replace);
}

}  // namespace attsvm
