#include <cmath>

#include "base/limits.h"
#include "margin/frobenius/exact_solver.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {

// The dual active-set method of Goldfarb and Idnani. Invariant: W is the smallest matrix that meets the rows of the set
// as equations, their multipliers are ≥ 0 on inequalities, and they are independent. Every full step increases ‖W‖, so
// no set occurs twice and the method ends: with no violated row (optimal), or with a violated row that is a combination
// of the set in which no multiplier can decrease to zero (Farkas).

/// Changes to coordinates in orthonormal bases of the span of all δ and of all ζ, which are often far fewer.
void ExactSolver::reduce() {
  left_.reset(rows_.dp());
  right_.reset(rows_.zp());
  for (Index k = 0; k < live_; ++k) left_.widen(rows_.delta(k), rows_.d());
  for (const RowBlock& block : rows_.blocks()) right_.widen(rows_.zeta(block.query), rows_.dz());
  reduced_.shape(live_, static_cast<Index>(problem_->groups().size()), left_.size(), right_.size());
  for (Index k = 0; k < live_; ++k) {
    std::fill_n(reduced_.delta(k), reduced_.dp(), 0.0);
    project(left_.q(0), rows_.dp(), left_.size(), rows_.delta(k), reduced_.delta(k));
  }
  for (const RowBlock& block : rows_.blocks()) {
    std::fill_n(reduced_.zeta(block.query), reduced_.zp(), 0.0);
    project(right_.q(0), rows_.zp(), right_.size(), rows_.zeta(block.query), reduced_.zeta(block.query));
  }
  reduced_.group(query_.data(), live_, UnitRows::Gram::none);
}

void ExactSolver::load_row(Index k) {  // a_ = δ_k ζ_kᵀ
  const double *delta = reduced_.delta(k), *zeta = reduced_.zeta(query_[k]);
  for (Index j = 0, t = 0; j < reduced_.dz(); ++j) {
    for (Index i = 0; i < reduced_.dp(); ++i) a_[t++] = delta[i] * zeta[j];
  }
}

/// Recomputes y = R⁻ᵀ b from entry `from` on, W = Q y, and the multipliers R⁻¹ y.
void ExactSolver::refresh(Index from) {
  const Index size = basis_.size(), entries = reduced_.entries();
  for (Index j = from; j < size; ++j) y_[j] = rhs_[set_[j]];
  basis_.solve_transposed(y_.data(), from);
  if (from > 0 && from + 1 == size) {
    axpy(y_[from], basis_.q(from), C_.data(), entries);
  } else {
    combine(basis_.q(0), entries, size, y_.data(), C_.data());
  }
  std::copy_n(y_.data(), size, set_x_.data());
  basis_.solve(set_x_.data());
}

void ExactSolver::add_projected(Index k) {
  basis_.push();
  set_.push(k);
  member_[k] = 1;
}

void ExactSolver::drop_member(Index j) {
  member_[set_[j]] = 0;
  basis_.drop(j);
  set_.erase(j);
}

/// Starts from the set of the fast path without dependent rows and negative multipliers; equalities come first.
void ExactSolver::start_from_guess() {
  const Index unknowns = reduced_.d() * reduced_.dz();
  basis_.reset(reduced_.entries());
  member_.fill(live_, 0);
  implied_.fill(live_, 0);
  next_.swap(set_);
  set_.clear();
  for (const int equalities : {1, 0}) {
    for (const Index k : next_) {
      if (free_[k] != equalities || basis_.size() == unknowns) continue;
      load_row(k);
      if (basis_.project(a_.data()) > kIndependent) add_projected(k);
    }
  }
  for (bool again = true; again;) {
    again = false;
    refresh(0);
    for (Index j = basis_.size() - 1; j >= 0; --j) {
      if (free_[set_[j]] != 0 || set_x_[j] >= 0) continue;
      drop_member(j);
      again = true;
    }
  }
}

ExactSolver::Outcome ExactSolver::active_set(const std::function<bool()>& stop) {
  robust_ = true;
  reduce();
  const Index entries = reduced_.entries(), unknowns = reduced_.d() * reduced_.dz();
  for (auto* buffer : {&a_, &C_}) buffer->grow(std::max(entries, rows_.entries()));
  y_.grow(live_);
  r_.grow(live_);
  start_from_guess();

  double record = 0, loosened = 1;
  bool stopped = false;
  for (Index since = 0;; ++iterations_) {
    stopped = stop();
    if (stopped) break;
    double norm = 0;
    for (Index j = 0; j < basis_.size(); ++j) norm += y_[j] * y_[j];
    norm = std::sqrt(norm);
    if (norm > record * (1 + 1e-14)) {
      record = norm;
      since = 0;
    } else if (++since > 20 + 2 * basis_.size()) {  // only rounding still moves it: loosen the tolerance
      loosened *= 4;
      since = 0;
    }
    const double tolerance = kMeet * loosened;

    evaluate(reduced_.view(), C_.data(), reduced_.work(), value_.data());
    Index p = -1;  // the worst violated equality, else the worst inequality
    double missing = 0;
    for (Index k = 0; k < live_; ++k) {
      if (member_[k] != 0 || implied_[k] != 0) continue;
      const double violation = free_[k] != 0 ? std::abs(rhs_[k] - value_[k]) : rhs_[k] - value_[k];
      if (violation <= tolerance * (norm + std::abs(rhs_[k]))) continue;
      if (p < 0 || (free_[k] == free_[p] ? violation > missing : free_[k] > free_[p])) {
        p = k;
        missing = violation;
      }
    }
    if (p < 0) break;

    const double sign = rhs_[p] > value_[p] ? 1 : -1;
    Index from = basis_.size();
    for (load_row(p);;) {
      const Index size = basis_.size();
      const double rest = basis_.project(a_.data());
      std::copy_n(basis_.coefficients(), size, r_.data());
      basis_.solve(r_.data());
      double sum = 1, top = 0;
      for (Index j = 0; j < size; ++j) {
        sum += std::abs(r_[j]);
        top = std::max(top, std::abs(r_[j]));
      }
      const double noise = std::min(sum, kAmplification);  // how much the combination amplifies the rounding of the set
      const bool flat = size == unknowns || rest <= kDependent * noise;
      if (flat && missing <= 8 * tolerance * noise * (norm + std::abs(rhs_[p]))) {
        implied_[p] = 1;
        break;
      }
      double step = flat ? kInfinity : missing / (rest * rest);
      Index blocking = -1;
      for (Index j = 0; j < size; ++j) {
        if (free_[set_[j]] != 0 || sign * r_[j] <= kNegligible * top) continue;
        const double reach = std::max(set_x_[j], 0.0) / (sign * r_[j]);
        if (reach < step) {
          step = reach;
          blocking = j;
        }
      }
      if (flat && blocking < 0) {  // row p and −r on the set cancel, their right-hand sides do not
        x_.fill(live_, 0.0);
        for (Index j = 0; j < size; ++j) {
          if (std::abs(r_[j]) > kNegligible * top && (free_[set_[j]] != 0 || sign * r_[j] < 0))
            x_[set_[j]] = -sign * r_[j];
        }
        x_[p] = sign;
        W_.fill(rows_.entries(), 0.0);
        return Outcome::infeasible;
      }
      for (Index j = 0; j < size; ++j) set_x_[j] -= step * sign * r_[j];
      if (!flat) missing -= step * rest * rest;
      if (blocking < 0) {
        add_projected(p);
        break;
      }
      std::copy(set_x_.data() + blocking + 1, set_x_.data() + size, set_x_.data() + blocking);
      drop_member(blocking);
      from = 0;
    }
    if (implied_[p] != 0 && from > 0) continue;
    implied_.fill(live_, 0);
    refresh(from);
  }
  x_.fill(live_, 0.0);
  for (Index j = 0; j < basis_.size(); ++j) x_[set_[j]] = free_[set_[j]] != 0 ? set_x_[j] : std::max(set_x_[j], 0.0);
  expand();
  return stopped ? Outcome::stopped : Outcome::optimal;
}

/// Converts W back to full coordinates and refines it there against the full rows.
void ExactSolver::expand() {
  W_.fill(rows_.entries(), 0.0);
  for (int pass = 0;; ++pass) {
    for (Index b = 0; b < reduced_.dz(); ++b) {
      combine(left_.q(0), rows_.dp(), left_.size(), C_.data() + b * reduced_.dp(), a_.data());
      for (Index j = 0; j < rows_.dz(); ++j) axpy(right_.q(b)[j], a_.data(), W_.data() + j * rows_.dp(), rows_.dp());
    }
    evaluate(rows_.view(), W_.data(), rows_.work(), value_.data());
    if (pass == 2) return;
    for (Index j = 0; j < basis_.size(); ++j) y_[j] = rhs_[set_[j]] - value_[set_[j]];
    basis_.solve_transposed(y_.data());
    combine(basis_.q(0), reduced_.entries(), basis_.size(), y_.data(), C_.data());
  }
}

}  // namespace attsvm::internal
