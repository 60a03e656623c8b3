#include "report/plane.h"

#include <algorithm>

#include "base/decompositions.h"
#include "base/refuse.h"

namespace attsvm::internal {
namespace {

constexpr Index kCoordinates = 8;         // offered as axes, unless the request names others
constexpr Index kComponents = 2;          // principal ones
constexpr Index kLargest = 1024;          // no principal components for larger d: they would take minutes
constexpr double kCovarianceWork = 2e10;  // multiplications; above it, only every k-th token is used
constexpr Index kShownTokens = 200'000;   // most tokens shown

}  // namespace

Axes::Axes(const AttentionTask& task, const RowMatrix* W, std::span<const Index> coordinates) {
  while (shown_ < task.sequences() && (shown_ == 0 || task.offset(shown_ + 1) <= kShownTokens)) ++shown_;
  if (W != nullptr && task.key_size() > 1) follow(task, *W);
  if (task.key_size() > 1 && task.key_size() <= kLargest) add_components(task);
  std::vector<Index> chosen(coordinates.begin(), coordinates.end());
  const Index room = std::max<Index>(2, kPageNumbers / task.offset(shown_) - kComponents);
  for (Index k = 0; coordinates.empty() && k < std::min({task.key_size(), kCoordinates, room}); ++k)
    chosen.push_back(k);
  for (const Index k : chosen) {
    if (k < 0 || k >= task.key_size()) refuse("coordinate {}; must be 0 to {}", k, task.key_size() - 1);
    directions_.push_back({.coordinate = k});
  }
}

void Axes::follow(const AttentionTask& task, const RowMatrix& W) {
  if (task.queries() != task.sequences()) return;
  RowMatrix of_query(task.queries(), task.key_size());
  for (Index i = 0; i < task.queries(); ++i) {
    if (task.sequence(i) != i) return;
    const Eigen::VectorXd u = W * task.query(i);
    const double length = u.stableNorm();
    of_query.row(i) = (length > 0 ? u / length : u).transpose();
  }
  directions_.push_back({.of_query = std::move(of_query)});
}

void Axes::add_components(const AttentionTask& task) {
  const Index d = task.key_size(), N = task.tokens();
  const double work = static_cast<double>(N) * static_cast<double>(d * d);
  const auto stride = static_cast<Index>(work / kCovarianceWork) + 1;
  RowMatrix sample((N + stride - 1) / stride, d);
  Index row = 0;
  for (Index s = 0, next = 0; s < task.sequences(); ++s) {
    const ConstRows keys = task.keys(s);
    for (; next < task.offset(s + 1); next += stride) sample.row(row++) = keys.row(next - task.offset(s));
  }
  const Eigen::RowVectorXd mean = sample.colwise().mean();
  sample.rowwise() -= mean;
  const Eigen::MatrixXd covariance = sample.transpose() * sample;
  const double total = covariance.trace();
  if (!(total > 0)) return;  // all keys are the same
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(covariance);
  for (Index k = 0; k < std::min(kComponents, d); ++k) {
    Eigen::VectorXd component = eigen.eigenvectors().col(d - 1 - k);
    Index largest = 0;
    component.cwiseAbs().maxCoeff(&largest);
    if (component(largest) < 0) component = -component;  // fixes the arbitrary sign
    directions_.push_back(
        {.component = std::move(component), .share = std::max(0.0, eigen.eigenvalues()(d - 1 - k)) / total});
  }
}

Json Axes::json() const {
  Json list = Json::array();
  Index components = 0;
  for (const Direction& one : directions_) {
    if (one.of_query.size() > 0) {
      list.push_back({{"kind", "max-margin"}, {"index", 0}, {"share", nullptr}});
    } else if (one.coordinate < 0) {
      list.push_back({{"kind", "principal"}, {"index", components++}, {"share", one.share}});
    } else {
      list.push_back({{"kind", "coordinate"}, {"index", one.coordinate}, {"share", nullptr}});
    }
  }
  return list;
}

double Axes::along(Index axis, Index query, const double* x) const {
  const Direction& one = directions_[static_cast<std::size_t>(axis)];
  if (one.of_query.size() > 0)
    return one.of_query.row(query).dot(Eigen::Map<const Eigen::RowVectorXd>(x, one.of_query.cols()));
  return one.coordinate >= 0 ? x[one.coordinate] : one.component.dot(ConstVector(x, one.component.size()));
}

Json Axes::tokens_json(const AttentionTask& task) const {
  std::vector<Index> offsets{0};
  for (Index s = 0; s < shown_; ++s) offsets.push_back(task.offset(s + 1));
  Json coordinates = Json::array();
  for (Index a = 0; a < count(); ++a) {
    std::vector<double> list;
    list.reserve(static_cast<std::size_t>(offsets.back()));
    for (Index s = 0; s < shown_; ++s) {
      const ConstRows keys = task.keys(s);
      for (Index t = 0; t < keys.rows(); ++t) list.push_back(along(a, s, keys.row(t).data()));
    }
    coordinates.push_back(std::move(list));
  }
  return {{"offsets", offsets}, {"coordinates", std::move(coordinates)}};
}

Json directions_json(const AttentionTask& task, const Axes& axes, const Eigen::Ref<const RowMatrix>& W, Index queries) {
  std::vector<Json> coordinates(static_cast<std::size_t>(axes.count()), Json::array());
  std::vector<double> lengths;
  for (Index i = 0; i < queries; ++i) {
    const Eigen::VectorXd u = W * task.query(i);
    const double length = u.stableNorm();
    lengths.push_back(length);
    for (Index a = 0; a < axes.count(); ++a) {
      coordinates[static_cast<std::size_t>(a)].push_back(length > 0 ? Json(axes.along(a, i, u.data()) / length)
                                                                    : Json(nullptr));
    }
  }
  return {{"length", lengths}, {"coordinates", coordinates}};
}

}  // namespace attsvm::internal
