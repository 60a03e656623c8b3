#include "report/plane.h"

#include <algorithm>
#include <cmath>

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

Axes::Axes(const AttentionTask& task, const RowMatrix* W, std::span<const Index> coordinates) : task_(task) {
  while (shown_ < task.sequences() && (shown_ == 0 || task.offset(shown_ + 1) <= kShownTokens)) ++shown_;
  if (W != nullptr && task.key_size() > 1) W_ = *W;
  if (task.key_size() > 1 && task.key_size() <= kLargest) add_components();
  std::vector<Index> chosen(coordinates.begin(), coordinates.end());
  const Index room = std::max<Index>(2, kPageNumbers / task.offset(shown_) - kComponents);
  for (Index k = 0; coordinates.empty() && k < std::min({task.key_size(), kCoordinates, room}); ++k)
    chosen.push_back(k);
  for (const Index k : chosen) {
    if (k < 0 || k >= task.key_size()) refuse("coordinate {}; must be 0 to {}", k, task.key_size() - 1);
    shared_.push_back({.coordinate = k});
  }
}

Axes::Frame Axes::frame(Index query) const {
  if (!own()) return {};
  const Index d = task_.key_size();
  Frame frame{.along = W_ * task_.query(query), .across = {}};
  const double length = frame.along.stableNorm();
  if (length > 0) frame.along /= length;
  const bool components = shared_.size() > 1 && shared_[1].coordinate < 0;
  const auto candidate = [&](Index k) -> Eigen::VectorXd {
    return components ? shared_[static_cast<std::size_t>(k)].component : Eigen::VectorXd::Unit(d, k);
  };
  frame.across = candidate(0);
  // Of two orthonormal directions, one at most is closer to W z than 45 degrees.
  if (std::abs(frame.across.dot(frame.along)) > std::sqrt(0.5)) frame.across = candidate(1);
  for (int k = 0; k < 2; ++k) frame.across -= frame.across.dot(frame.along) * frame.along;  // twice: rounding
  frame.across.normalize();
  return frame;
}

void Axes::add_components() {
  const Index d = task_.key_size(), N = task_.tokens();
  const double work = static_cast<double>(N) * static_cast<double>(d * d);
  const auto stride = static_cast<Index>(work / kCovarianceWork) + 1;
  RowMatrix sample((N + stride - 1) / stride, d);
  Index row = 0;
  for (Index s = 0, next = 0; s < task_.sequences(); ++s) {
    const ConstRows keys = task_.keys(s);
    for (; next < task_.offset(s + 1); next += stride) sample.row(row++) = keys.row(next - task_.offset(s));
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
    shared_.push_back(
        {.component = std::move(component), .share = std::max(0.0, eigen.eigenvalues()(d - 1 - k)) / total});
  }
}

Json Axes::json() const {
  Json list = Json::array();
  if (own()) {
    for (const char* kind : {"max-margin", "across"})
      list.push_back({{"kind", kind}, {"index", 0}, {"share", nullptr}});
  }
  Index components = 0;
  for (const Direction& one : shared_) {
    if (one.coordinate < 0) {
      list.push_back({{"kind", "principal"}, {"index", components++}, {"share", one.share}});
    } else {
      list.push_back({{"kind", "coordinate"}, {"index", one.coordinate}, {"share", nullptr}});
    }
  }
  return list;
}

double Axes::along(Index axis, const Frame& frame, const double* x) const {
  if (own() && axis < 2) return (axis == 0 ? frame.along : frame.across).dot(ConstVector(x, frame.along.size()));
  const Direction& one = shared_[static_cast<std::size_t>(axis - (own() ? 2 : 0))];
  return one.coordinate >= 0 ? x[one.coordinate] : one.component.dot(ConstVector(x, one.component.size()));
}

Json Axes::tokens_json() const {
  std::vector<Index> offsets{0};
  for (Index s = 0; s < shown_; ++s) offsets.push_back(task_.offset(s + 1));
  Json coordinates = Json::array();
  for (Index a = 0; a < count(); ++a) {
    if (own() && a < 2) {
      coordinates.push_back(nullptr);
      continue;
    }
    std::vector<double> list;
    list.reserve(static_cast<std::size_t>(offsets.back()));
    for (Index s = 0; s < shown_; ++s) {
      const ConstRows keys = task_.keys(s);
      for (Index t = 0; t < keys.rows(); ++t) list.push_back(along(a, {}, keys.row(t).data()));
    }
    coordinates.push_back(std::move(list));
  }

  Index queries = 0;
  for (Index room = kPageNumbers; queries < task_.queries() && task_.sequence(queries) < shown_; ++queries) {
    room -= 3 * reach_of(task_, queries);
    if (room < 0 && queries > 0) break;
  }
  Json along_own, across_own, scores;
  const std::vector<double> values = task_.head().kind != HeadKind::none ? head_values(task_) : std::vector<double>{};
  for (Index i = 0; i < queries; ++i) {
    const Index s = task_.sequence(i), T = reach_of(task_, i);
    const Frame own_frame = frame(i);
    const ConstRows keys = task_.keys(s);
    const auto list = [T](const auto& value_of) {
      std::vector<double> made(static_cast<std::size_t>(T));
      for (Index t = 0; t < T; ++t) made[static_cast<std::size_t>(t)] = value_of(t);
      return made;
    };
    if (own()) {
      along_own.push_back(list([&](Index t) { return along(0, own_frame, keys.row(t).data()); }));
      across_own.push_back(list([&](Index t) { return along(1, own_frame, keys.row(t).data()); }));
    }
    if (!values.empty()) {
      scores.push_back(
          list([&](Index t) { return task_.label(i) * values[static_cast<std::size_t>(task_.offset(s) + t)]; }));
    }
  }
  return {{"offsets", offsets},
          {"axes", json()},
          {"coordinates", std::move(coordinates)},
          {"along", std::move(along_own)},
          {"across", std::move(across_own)},
          {"scores", std::move(scores)}};
}

Json directions_json(const AttentionTask& task, const Axes& axes, const Eigen::Ref<const RowMatrix>& W, Index queries) {
  std::vector<Json> coordinates(static_cast<std::size_t>(axes.count()), Json::array());
  std::vector<double> lengths;
  for (Index i = 0; i < queries; ++i) {
    const Eigen::VectorXd u = W * task.query(i);
    const Axes::Frame frame = axes.frame(i);
    const double length = u.stableNorm();
    lengths.push_back(length);
    for (Index a = 0; a < axes.count(); ++a) {
      coordinates[static_cast<std::size_t>(a)].push_back(length > 0 ? Json(axes.along(a, frame, u.data()) / length)
                                                                    : Json(nullptr));
    }
  }
  return {{"length", lengths}, {"coordinates", coordinates}};
}

}  // namespace attsvm::internal
