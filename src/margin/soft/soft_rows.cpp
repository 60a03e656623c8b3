#include "margin/soft/soft_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "base/refuse.h"

namespace attsvm::internal {
namespace {

// Beyond these a limit is never reached, or leaves W so small that no value counts; squares stay within double.
constexpr double kLeastLimit = 1e-100, kMostLimit = 1e100;

constexpr double kLargestSize = 1e150;  // multipliers are about 1/size²

}  // namespace

void require_sizes(const MarginProblem& problem) {
  Eigen::VectorXd delta(problem.d());
  double least = kInfinity;  // of the rows ≥ 1
  for (const MarginGroup& group : problem.groups()) {
    const double zeta_size = ConstVector(group.z, problem.dz()).stableNorm();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      problem.delta(group, k, delta.data());
      const double delta_size = delta.stableNorm(), size = delta_size * zeta_size;
      if (delta_size == 0 || zeta_size == 0) continue;
      if (!std::isfinite(size) || size < std::numeric_limits<double>::min()) {
        refuse(
            "query {}: its row against token {} has size {} x {}, which double cannot hold; rescale tokens or queries",
            group.query, problem.drop_token(group, k), delta_size, zeta_size);
      }
      if (is_soft(problem, k)) least = std::min(least, size);
    }
  }
  if (least > kLargestSize && std::isfinite(least)) {
    refuse(
        "the smallest row >= 1 has size {:.3g}: double cannot hold the multipliers of a soft margin, about 1/size^2; "
        "rescale tokens or queries",
        least);
  }
}

SoftRows::SoftRows(const MarginProblem& problem, const std::vector<double>& penalty, const std::vector<Index>& rows) {
  const auto most = static_cast<Index>(rows.size());
  b_.resize(most);
  e_.resize(most);
  size_.resize(most);
  delta_.resize(most, problem.d());
  zeta_.resize(static_cast<Index>(problem.groups().size()), problem.dz());
  Eigen::VectorXd delta(problem.d());
  auto next = rows.begin();
  for (Index g = 0; g < zeta_.rows(); ++g) {
    const MarginGroup& source = problem.groups()[static_cast<std::size_t>(g)];
    const ConstVector zeta(source.z, problem.dz());
    const double zeta_size = zeta.stableNorm();
    Group group{static_cast<Index>(row_.size()), 0, kInfinity, kInfinity, 0, source.query, g};
    for (; next != rows.end() && *next < source.first_row + source.rows; ++next) {
      const auto at = static_cast<Index>(row_.size());
      const bool soft = is_soft(problem, *next);
      problem.delta(source, *next, delta.data());
      const double delta_size = delta.stableNorm(), size = delta_size * zeta_size;
      const bool zero = delta_size == 0 || zeta_size == 0;
      if (zero && !soft) continue;
      size_(at) = zero ? 0 : size;
      b_(at) = problem.rhs(*next);
      e_(at) = soft ? 1 : 0;
      delta_.row(at) = delta.transpose() / (zero ? 1 : delta_size);
      if (soft) {
        group.penalty = penalty[static_cast<std::size_t>(source.query)];
        group.size = std::max(group.size, size_(at));
      }
      row_.push_back(*next);
      equal_.push_back(problem.equal(*next));
      ++group.count;
    }
    if (group.count == 0) continue;
    if (std::isfinite(group.penalty) && group.size == 0) group.size = 1;
    for (Index k = group.first; k < group.first + group.count; ++k) {
      if (size_(k) == 0) size_(k) = group.size;  // zero for every W: any size will do
      b_(k) /= size_(k);
      if (e_(k) > 0) e_(k) = group.size / size_(k);
    }
    zeta_.row(static_cast<Index>(groups_.size())) = zeta.transpose() / (zeta_size > 0 ? zeta_size : 1);
    groups_.push_back(group);
  }
  const auto count = static_cast<Index>(row_.size());
  for (auto* numbers : {&b_, &e_, &size_}) numbers->conservativeResize(count);
  delta_.conservativeResize(count, problem.d());
  zeta_.conservativeResize(static_cast<Index>(groups_.size()), problem.dz());
  if (const double largest = count > 0 ? b_.maxCoeff() : 0; largest > 0) scale_ = std::ldexp(1.0, -std::ilogb(largest));
  b_ *= scale_;
  for (Group& group : groups_) {
    if (group.size > 0) group.limit = std::clamp(group.penalty * (group.size * scale_), kLeastLimit, kMostLimit);
  }
}

Eigen::MatrixXd SoftRows::gram() const {
  const Eigen::MatrixXd between = zeta_ * zeta_.transpose();
  Eigen::MatrixXd G = delta_ * delta_.transpose();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t j = 0; j < groups_.size(); ++j) {
      G.block(groups_[i].first, groups_[j].first, groups_[i].count, groups_[j].count) *=
          between(static_cast<Index>(i), static_cast<Index>(j));
    }
  }
  return G;
}

Eigen::MatrixXd SoftRows::matrix() const {
  const Index d = delta_.cols(), dz = zeta_.cols();
  Eigen::MatrixXd A(count(), unknowns());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    for (Index b = 0; b < dz; ++b) {
      A.block(group.first, b * d, group.count, d) =
          zeta_(static_cast<Index>(i), b) * delta_.middleRows(group.first, group.count);
    }
  }
  return A;
}

Eigen::VectorXd SoftRows::products(const Eigen::VectorXd& x) const {
  using Long = Eigen::Matrix<long double, Eigen::Dynamic, 1>;
  const Index d = delta_.cols(), dz = zeta_.cols();
  Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic> W = decltype(W)::Zero(d, dz);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Long g = Long::Zero(d);
    for (Index k = groups_[i].first; k < groups_[i].first + groups_[i].count; ++k) {
      if (x(k) != 0) g += static_cast<long double>(x(k)) * delta_.row(k).transpose().cast<long double>();
    }
    W += g * zeta_.row(static_cast<Index>(i)).cast<long double>();
  }
  Eigen::VectorXd values(count());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Long u = W * zeta_.row(static_cast<Index>(i)).transpose().cast<long double>();
    for (Index k = groups_[i].first; k < groups_[i].first + groups_[i].count; ++k)
      values(k) = static_cast<double>(delta_.row(k).transpose().cast<long double>().dot(u));
  }
  return values;
}

Eigen::VectorXd SoftRows::multipliers(const Eigen::VectorXd& x, Index rows) const {
  Eigen::VectorXd dual = Eigen::VectorXd::Zero(rows);
  for (const Group& group : groups_) {
    for (Index k = group.first; k < group.first + group.count; ++k) {
      const double lambda = x(k) / size_(k) / scale_;
      if (!std::isfinite(lambda)) continue;
      dual(row(k)) = equal(k) ? lambda : std::clamp(lambda, 0.0, e_(k) > 0 ? group.penalty : kInfinity);
    }
  }
  return dual;
}

void keep_within(const MarginProblem& problem, const std::vector<double>& penalty, Eigen::VectorXd& dual) {
  for (const MarginGroup& group : problem.groups()) {
    const double most = penalty[static_cast<std::size_t>(group.query)];
    for (double shrink = 1; shrink > 0; shrink = 1 - 2 * (1 - shrink) - kEpsilon) {
      long double sum = 0;
      Index terms = 0;
      for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
        if (!is_soft(problem, k) || dual(k) == 0) continue;
        sum += dual(k);
        ++terms;
      }
      if (sum <= (terms > 1 ? most * (1 - static_cast<long double>(terms) * 0x1p-62L) : most)) break;
      const double factor = std::min(shrink, static_cast<double>(most / sum));
      for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
        if (is_soft(problem, k)) dual(k) *= factor;
      }
    }
  }
}

}  // namespace attsvm::internal
