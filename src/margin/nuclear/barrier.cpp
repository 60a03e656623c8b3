#include "margin/nuclear/barrier.h"

#include <algorithm>
#include <cmath>

#include "base/blas.h"
#include "base/kernels/gram.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kStartNorm = 0.8, kFurther = 1.25;  // ‖A‖ at the start, and the factor within which it is reached
constexpr double kReduction = 0.5;     // of μ per step; measured: 0.4 and 0.3 take more steps (docs/tried.md)
constexpr double kOffCentre = 0.6;     // relative residual of a row above which μ is not reduced
constexpr double kNearby = 0.1;        // rows with less slack than this share of their demand may become active
constexpr double kLeastDemand = 1e-2;  // least demand that a row counts with
constexpr double kTinyPivot = 1e-12;   // of unit diagonals: a row below it depends on others
constexpr double kWrong = 1e-10;       // allowed error of multipliers and rows of the quadratic program
constexpr double kSufficient = 1e-3;   // share of the promised gain that a step must bring
constexpr double kShorter = 0.6, kSmallestStep = 1e-2;  // factor of a step that does not, and where the search ends
constexpr int kPivots = 8, kSweeps = 40;                // sets that block pivoting tries; sweeps if that fails

}  // namespace

bool NuclearBarrier::start(NuclearRows& rows, const double* lambda) {
  rows_ = &rows;
  m_ = rows.count();
  for (auto* buffer : {&lambda_, &slack_, &value_, &move_}) buffer->grow(m_);
  std::copy_n(lambda, m_, lambda_.data());
  rows.weigh(lambda_.data(), A_);
  const double size = A_.stableNorm();
  if (!(size > 0 && std::isfinite(size))) return false;
  double factor = kStartNorm / size;  // certainly inside: the operator norm is smaller
  A_ *= factor;
  for (trial_ = kFurther / kStartNorm * A_; inverse_.factor(trial_); trial_ *= kFurther) {
    A_ *= kFurther;
    factor *= kFurther;
  }
  for (Index k = 0; k < m_; ++k) lambda_[k] *= factor;
  inverse_.factor(A_);
  mu_ = 0;
  measure();
  return mu_ > 0 && std::isfinite(gap_);
}

/// Computes everything that depends on λ and A.
void NuclearBarrier::measure() {
  const Index P = rows_->left(), Q = rows_->right();
  inverse_.invert(A_, 1, T_);
  C_ = T_.topRightCorner(P, Q);
  rows_->values(C_, value_.data());
  bound_ = 0;
  double carried = 0;
  for (Index k = 0; k < m_; ++k) {
    bound_ += rows_->rhs(k) * lambda_[k];
    carried += value_[k] * lambda_[k];
  }
  if (mu_ == 0) mu_ = bound_ / carried;
  double worst = 0;
  for (Index k = 0; k < m_; ++k) {
    const double rhs = rows_->rhs(k);
    slack_[k] = mu_ * value_[k] - rhs;
    if (rows_->equal(k) || lambda_[k] > 0 || slack_[k] < 0)
      worst = std::max(worst, std::abs(slack_[k]) / std::max(std::abs(rhs), kLeastDemand));
  }
  central_ = worst < kOffCentre;
  // ‖W‖_* − ⟨A,W⟩ = μ Σ σ/(1+σ), at most half of μ for each of the singular values of A
  gap_ = 0.5 * mu_ * static_cast<double>(std::min(P, Q)) / bound_;
}

void NuclearBarrier::weights(Eigen::MatrixXd& W) const { W = mu_ * C_; }

bool NuclearBarrier::step() {
  const double target = central_ ? kReduction * mu_ : mu_;
  choose_candidates(target);
  solve_program();
  rows_->weigh(move_.data(), dA_);
  if (!search(target)) return false;
  measure();
  return std::isfinite(gap_);
}

/// Chooses the rows of the quadratic program and forms its matrix and right-hand side.
void NuclearBarrier::choose_candidates(double target) {
  candidates_.clear();
  for (Index k = 0; k < m_; ++k) {
    if (rows_->equal(k) || lambda_[k] > 0 || slack_[k] < kNearby * std::max(std::abs(rows_->rhs(k)), kLeastDemand))
      candidates_.push(k);
  }
  const Index count = candidates_.size();
  schur_.choose(*rows_, candidates_.begin(), count);
  schur_.build(T_, T_, 0.5 * mu_, nullptr);
  schur_.mirror();
  for (auto* buffer : {&wanted_, &low_, &x_, &set_x_, &product_}) buffer->fill(schur_.ld(), 0.0);
  set_.clear();
  for (Index j = 0; j < count; ++j) {
    const Index k = candidates_[j];
    if (lambda_[k] == 0) continue;
    set_x_[set_.size()] = lambda_[k] / schur_.scale(j);
    set_.push(j);
  }
  combine_at(schur_.matrix(), schur_.ld(), set_.begin(), set_.size(), set_x_.data(), wanted_.data());
  set_.clear();
  for (Index j = 0; j < count; ++j) {
    const Index k = candidates_[j];
    low_[j] = rows_->equal(k) ? -kInfinity : 0;
    wanted_[j] += schur_.scale(j) * (rows_->rhs(k) - target * value_[k]);
    if (rows_->equal(k) || lambda_[k] > 0 || slack_[k] < 0) set_.push(j);
  }
}

/// Solves the program for x with the rows of the set as equations.
void NuclearBarrier::factor_set(Index size) {
  const Index ldl = pad4(size + 1);
  L_.grow(ldl * pad4(size));
  pick(schur_.matrix(), schur_.ld(), set_.begin(), size, L_.data(), ldl);
  for (Index i = 0; i < size; ++i) set_x_[i] = wanted_[set_[i]];
  const bool by_blas = size >= NuclearSchur::kBlasRows && size <= rows_->left() * rows_->right();
  if (by_blas && cholesky_of_columns(size, L_.data(), ldl)) {
    for (const bool transpose : {false, true}) solve_columns(transpose, size, L_.data(), ldl, 1, set_x_.data(), size);
    return;
  }
  if (by_blas) pick(schur_.matrix(), schur_.ld(), set_.begin(), size, L_.data(), ldl);
  for (Index i = 0; i < size; ++i) {
    double* column = L_.data() + i * ldl;
    column[size] = set_x_[i];
    std::fill(column + size + 1, column + ldl, 0.0);
  }
  factor_solve(L_.data(), ldl, size, kTinyPivot, set_x_.data());
}

/// min ½xᵀGx − wᵀx, x ≥ 0 off the equalities, by block pivoting. True: converged.
bool NuclearBarrier::pivot() {
  const Index count = candidates_.size();
  for (int pivots = 0; pivots < kPivots; ++pivots) {
    const Index size = set_.size();
    if (size == 0) return false;
    factor_set(size);
    combine_at(schur_.matrix(), schur_.ld(), set_.begin(), size, set_x_.data(), product_.data());
    x_.fill(schur_.ld(), 0.0);
    for (Index i = 0; i < size; ++i) x_[set_[i]] = set_x_[i];
    next_.clear();
    bool wrong = false;
    for (Index j = 0, member = 0; j < count; ++j) {
      const bool in = set_.meets(j, member);
      const bool bad = in ? x_[j] < low_[j] : wanted_[j] - product_[j] > kWrong;
      wrong = wrong || bad;
      if (in != bad) next_.push(j);
    }
    if (!wrong) return true;
    set_.swap(next_);
  }
  return false;
}

/// The same by coordinate descent from the present multipliers: not exact, but never worse than those.
void NuclearBarrier::sweep_program() {
  const Index count = candidates_.size();
  set_.clear();
  for (Index j = 0; j < count; ++j) {
    set_x_[j] = x_[j] = lambda_[candidates_[j]] / schur_.scale(j);
    set_.push(j);
  }
  combine_at(schur_.matrix(), schur_.ld(), set_.begin(), count, set_x_.data(), product_.data());
  for (Index j = 0; j < count; ++j) product_[j] = wanted_[j] - product_[j];
  for (int sweeps = 0; sweeps < kSweeps; ++sweeps)
    gauss_seidel(schur_.matrix(), schur_.ld(), count, low_.data(), x_.data(), product_.data());
}

/// Computes the change of the multipliers.
void NuclearBarrier::solve_program() {
  if (!pivot()) sweep_program();
  for (Index k = 0; k < m_; ++k) move_[k] = -lambda_[k];
  for (Index j = 0; j < candidates_.size(); ++j) move_[candidates_[j]] += schur_.scale(j) * x_[j];
}

/// Searches along the move until the function that is maximised at μ = target has risen enough.
bool NuclearBarrier::search(double target) {
  double linear = 0, slope = 0;
  for (Index k = 0; k < m_; ++k) {
    linear += rows_->rhs(k) * move_[k];
    slope += (rows_->rhs(k) - target * value_[k]) * move_[k];
  }
  if (!(slope > 0)) return false;
  const double before = 0.5 * target * inverse_.log_det();
  double length = 1;
  const auto ascends = [&] {
    trial_ = A_ + length * dA_;
    if (!inverse_.factor(trial_)) return false;
    const double gain = length * linear + 0.5 * target * inverse_.log_det() - before;
    return gain >= kSufficient * length * slope;
  };
  while (!ascends()) {
    length *= kShorter;
    if (!(length > kSmallestStep)) return false;
  }
  A_.swap(trial_);
  for (Index k = 0; k < m_; ++k)
    lambda_[k] = length == 1 && move_[k] == -lambda_[k] ? 0 : lambda_[k] + length * move_[k];
  mu_ = target;
  return true;
}

}  // namespace attsvm::internal
