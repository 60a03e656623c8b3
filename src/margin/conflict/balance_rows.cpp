#include "margin/conflict/balance_rows.h"

#include <cmath>
#include <limits>

#include "base/kernels/dense.h"
#include "base/qr_basis.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

/// min ‖C x − e‖ over x_k ≥ 0 (any sign where free): column k is the unit row a_k with b_k below, e the last unit
/// vector.
class LeastSquares {
 public:
  LeastSquares(const MarginProblem& problem, const std::vector<Index>& rows);
  void solve();
  void write(const std::vector<Index>& rows, Eigen::VectorXd& lambda) const;

 private:
  void load(const MarginProblem& problem, const MarginGroup& group, Index row, Index k);
  double update_residual();
  Index choose();
  bool settle();
  void leave(Index j);

  Index unknowns_, dimension_, count_;
  Buffer<double> columns_, size_, residual_, gradient_;
  Buffer<std::uint8_t> free_, member_, refused_;
  std::vector<Index> set_;
  std::vector<double> x_, y_;  // multipliers of the set: present, and the least-squares solution
  QrBasis basis_;
};

LeastSquares::LeastSquares(const MarginProblem& problem, const std::vector<Index>& rows)
    : unknowns_(problem.d() * problem.dz()), dimension_(pad4(unknowns_ + 1)), count_(static_cast<Index>(rows.size())) {
  columns_.fill(count_ * dimension_, 0.0);
  size_.grow(count_);
  residual_.grow(dimension_);
  gradient_.grow(pad4(count_));
  free_.grow(count_);
  member_.fill(count_, 0);
  refused_.fill(count_, 0);
  Index k = 0;
  for (const MarginGroup& group : problem.groups()) {
    for (; k < count_ && rows[static_cast<std::size_t>(k)] < group.first_row + group.rows; ++k) {
      load(problem, group, rows[static_cast<std::size_t>(k)], k);
    }
  }
  double largest = 0;  // scales right-hand sides to at most one, like the entries above them
  for (k = 0; k < count_; ++k) largest = std::max(largest, std::abs(columns_[k * dimension_ + unknowns_]));
  for (k = 0; k < count_ && largest > 0; ++k) columns_[k * dimension_ + unknowns_] /= largest;
}

void LeastSquares::load(const MarginProblem& problem, const MarginGroup& group, Index row, Index k) {
  Eigen::VectorXd delta(problem.d());
  problem.delta(group, row, delta.data());
  const ConstVector zeta(group.z, problem.dz());
  double* column = columns_.data() + k * dimension_;
  size_[k] = delta.stableNorm() * zeta.stableNorm();
  Eigen::Map<RowMatrix>(column, problem.d(), problem.dz()) =
      delta.stableNormalized() * zeta.stableNormalized().transpose();
  column[unknowns_] = problem.rhs(row) / size_[k];
  free_[k] = problem.equal(row) ? 1 : 0;
}

void LeastSquares::solve() {
  basis_.reset(dimension_);
  for (Index count = 0; count < 3 * (unknowns_ + count_); ++count) {
    if (update_residual() <= kEpsilon) return;
    const Index entering = choose();
    if (entering < 0) return;
    if (basis_.size() > unknowns_ || basis_.project(columns_.data() + entering * dimension_) <= kDependent) {
      refused_[entering] = 1;
      continue;
    }
    basis_.push();
    member_[entering] = 1;
    set_.push_back(entering);
    x_.push_back(0);
    if (settle()) refused_.fill(count_, 0);
    refused_[entering] = member_[entering] == 0 ? 1 : 0;  // entered only by rounding
  }
}

double LeastSquares::update_residual() {
  residual_.fill(dimension_, 0.0);
  residual_[unknowns_] = 1;
  for (std::size_t j = 0; j < set_.size(); ++j) {
    axpy(-x_[j], columns_.data() + set_[j] * dimension_, residual_.data(), dimension_);
  }
  return std::sqrt(dot(residual_.data(), residual_.data(), dimension_));
}

/// The column that reduces the residual most; −1: none does.
Index LeastSquares::choose() {
  project(columns_.data(), dimension_, count_, residual_.data(), gradient_.data());
  Index best = -1;
  double steepest = kEpsilon;
  for (Index k = 0; k < count_; ++k) {
    if (member_[k] != 0 || refused_[k] != 0) continue;
    const double slope = free_[k] != 0 ? std::abs(gradient_[k]) : gradient_[k];
    if (slope > steepest) {
      steepest = slope;
      best = k;
    }
  }
  return best;
}

/// Moves to the least-squares solution on the set; columns that would become negative on the way leave. False: nothing
/// moved.
bool LeastSquares::settle() {
  for (bool moved = false;;) {
    const Index size = basis_.size();
    y_.resize(set_.size());
    for (Index j = 0; j < size; ++j) y_[static_cast<std::size_t>(j)] = basis_.q(j)[unknowns_];
    basis_.solve(y_.data());
    double step = 1;
    std::size_t blocking = set_.size();
    for (std::size_t j = 0; j < set_.size(); ++j) {
      if (free_[set_[j]] != 0 || y_[j] > 0) continue;
      const double reach = x_[j] > 0 ? x_[j] / (x_[j] - y_[j]) : 0;
      if (reach < step || blocking == set_.size()) {
        step = reach;
        blocking = j;
      }
    }
    for (std::size_t j = 0; j < set_.size(); ++j) x_[j] += step * (y_[j] - x_[j]);
    moved = moved || step > 0;
    if (blocking == set_.size()) return moved;
    leave(static_cast<Index>(blocking));
  }
}

void LeastSquares::leave(Index j) {
  member_[set_[static_cast<std::size_t>(j)]] = 0;
  basis_.drop(j);
  set_.erase(set_.begin() + j);
  x_.erase(x_.begin() + j);
}

void LeastSquares::write(const std::vector<Index>& rows, Eigen::VectorXd& lambda) const {
  lambda.setZero();
  for (std::size_t j = 0; j < set_.size(); ++j) {
    lambda(rows[static_cast<std::size_t>(set_[j])]) = x_[j] / size_[set_[j]];
  }
}

}  // namespace

double imbalance(const MarginProblem& problem, const Eigen::VectorXd& lambda) {
  Eigen::VectorXd delta(problem.d());
  double size = 0, demand = 0;
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (lambda(k) == 0) continue;
      problem.delta(group, k, delta.data());
      size += std::abs(lambda(k)) * delta.norm() * ConstVector(group.z, problem.dz()).norm();
      demand += lambda(k) * problem.rhs(k);
    }
  }
  return demand > 0 && size > 0 ? problem.weigh(lambda).norm() / size : 1;
}

double balance_rows(const MarginProblem& problem, const std::vector<Index>& rows, Eigen::VectorXd& lambda) {
  LeastSquares squares(problem, rows);
  squares.solve();
  lambda.resize(problem.rows());
  squares.write(rows, lambda);
  return imbalance(problem, lambda);
}

}  // namespace attsvm::internal
