#include "margin/frobenius/wide_active_set.h"

#include <algorithm>

namespace attsvm::internal {
namespace {

// In units of a scaled row. Gram matrices square the distance of nearly dependent rows, and 512 bits suffice for that.
// A row counts as dependent if its part outside the span of others is no larger than rounding of the tokens explains.
constexpr slong kDependent = -98;    // log₂ of the squared share of a dependent row outside the span of the set
constexpr slong kImplied = -47;      // log₂ of the violation, relative to the terms, that such a row may have
constexpr slong kNegligible = -128;  // log₂ below which coefficients of a combination count as zero
constexpr slong kMet = -128;         // log₂ of the violation, relative to ‖W‖ and b, of rows that count as met
constexpr Index kStepsPerRow = 20;   // most steps; by hand

}  // namespace

WideActiveSet::Outcome WideActiveSet::solve(const MarginProblem& problem, const Eigen::VectorXd& guess,
                                            const std::function<bool()>& stop, double lift) {
  rows_.load(problem);
  rows_of_problem_ = problem.rows();
  lambda_.assign(at(problem.rows()), Wide());
  iterations_ = 0;
  std::vector<char> live(at(problem.rows()), 0);
  rhs_.clear();
  free_.clear();
  for (Index k = 0; k < rows_.count(); ++k) {
    live[at(rows_.row(k))] = 1;
    rhs_.push_back(Wide(problem.rhs(rows_.row(k))).shifted(-rows_.exponent(k)));
    free_.push_back(problem.equal(rows_.row(k)) ? 1 : 0);
    if (lift > 0 && free_.back() == 0) rhs_.back() += Wide(lift) * sqrt(rows_.inner(k, k));
  }
  for (Index k = 0; k < problem.rows(); ++k) {
    if (live[at(k)] != 0 || (problem.equal(k) ? problem.rhs(k) == 0 : problem.rhs(k) <= 0)) continue;
    W_.assign(at(problem.d() * problem.dz()), Wide());  // row k of size zero has b ≠ 0
    lambda_[at(k)] = problem.rhs(k) > 0 ? 1 : -1;
    return Outcome::infeasible;
  }
  start_from(guess);
  for (const Index limit = kStepsPerRow * (rows_.count() + 10);; ++iterations_) {
    refresh();
    const Index p = most_violated();
    const bool stopped = p >= 0 && (iterations_ == limit || stop());
    if (p < 0 || stopped) {
      for (std::size_t j = 0; j < set_.size(); ++j)
        lambda_[at(rows_.row(set_[j]))] = x_[j].shifted(-rows_.exponent(set_[j]));
      return stopped ? Outcome::stopped : Outcome::optimal;
    }
    const Joining joining = bring_in(p);
    if (joining == Joining::conflict) return Outcome::infeasible;
    implied_[at(p)] = 1;
    if (joining == Joining::joined) std::fill(implied_.begin(), implied_.end(), 0);
  }
}

/// Starts with the equalities and the rows of the guess, except those that depend on others; then drops rows with
/// negative multipliers.
void WideActiveSet::start_from(const Eigen::VectorXd& guess) {
  set_.clear();
  gram_.clear();
  factor_.clear();
  member_.assign(at(rows_.count()), 0);
  implied_.assign(at(rows_.count()), 0);
  for (const bool equalities : {true, false}) {
    for (Index k = 0; k < rows_.count(); ++k) {
      if ((free_[at(k)] != 0) != equalities || (!equalities && !(guess(rows_.row(k)) > 0))) continue;
      Split part = split(k);
      if (!part.rest.is_zero()) push(k, std::move(part));
    }
  }
  for (bool again = true; again;) {
    again = false;
    refresh();
    for (Index j = static_cast<Index>(set_.size()) - 1; j >= 0; --j) {
      if (free_[at(set_[at(j)])] != 0 || x_[at(j)].sign() >= 0) continue;
      drop(j);
      again = true;
    }
  }
}

/// Recomputes multipliers, W and the values of all rows from the set.
void WideActiveSet::refresh() {
  WideVector asked;
  for (const Index k : set_) asked.push_back(rhs_[at(k)]);
  y_ = solve_lower(factor_, asked);
  x_ = solve_transposed(factor_, y_);
  norm_ = sqrt(dot(y_.data(), y_.data(), static_cast<Index>(y_.size())));
  WideVector lambda(at(rows_.count()));
  for (std::size_t j = 0; j < set_.size(); ++j) lambda[at(set_[j])] = x_[j];
  rows_.weigh(lambda, W_);
  rows_.values(W_, value_);
}

/// The most violated equality, else the most violated inequality; −1 if all are met.
Index WideActiveSet::most_violated() const {
  Index worst = -1;
  Wide most;
  for (Index k = 0; k < rows_.count(); ++k) {
    if (member_[at(k)] != 0 || implied_[at(k)] != 0) continue;
    Wide missing = rhs_[at(k)] - value_[at(k)];
    if (free_[at(k)] != 0) missing = abs(std::move(missing));
    if (missing.sign() <= 0 || missing <= (norm_ + abs(rhs_[at(k)])).shifted(kMet)) continue;
    if (worst < 0 || (free_[at(k)] == free_[at(worst)] ? missing > most : free_[at(k)] > free_[at(worst)])) {
      worst = k;
      most = std::move(missing);
    }
  }
  return worst;
}

/// Takes steps until row p is met; rows whose multipliers would become negative leave the set.
WideActiveSet::Joining WideActiveSet::bring_in(Index p) {
  Wide missing = rhs_[at(p)] - value_[at(p)];
  const int sign = missing.sign();
  missing = abs(std::move(missing));
  for (;;) {
    Split part = split(p);
    const bool flat = part.rest.is_zero();
    if (flat && missing <= noise(p, part)) return Joining::implied;
    Wide step = flat ? Wide() : missing / part.rest;
    Index blocking = -1;
    for (std::size_t j = 0; j < set_.size(); ++j) {
      if (free_[at(set_[j])] != 0 || part.r[j].sign() * sign <= 0) continue;
      if (part.r[j].exponent() <= kNegligible) continue;
      Wide reach = abs(x_[j] / part.r[j]);
      if ((flat && blocking < 0) || reach < step) {
        step = std::move(reach);
        blocking = static_cast<Index>(j);
      }
    }
    if (flat && blocking < 0) {
      keep_conflict(p, part, sign);
      return Joining::conflict;
    }
    for (std::size_t j = 0; j < set_.size(); ++j) x_[j] -= step * part.r[j] * Wide(sign);
    if (!flat) missing -= step * part.rest;
    if (blocking < 0) {
      push(p, std::move(part));
      return Joining::joined;
    }
    drop(blocking);
  }
}

/// By how much a row that depends on the set to rounding may miss its right-hand side.
Wide WideActiveSet::noise(Index p, const Split& split) const {
  Wide sum = norm_ * sqrt(rows_.inner(p, p)) + abs(rhs_[at(p)]);
  for (std::size_t j = 0; j < set_.size(); ++j) sum += abs(split.r[j]) * (norm_ + abs(rhs_[at(set_[j])]));
  return sum.shifted(kImplied);
}

WideActiveSet::Split WideActiveSet::split(Index p) const {
  Split part;
  part.rest = rows_.inner(p, p);
  const Wide size = part.rest;
  WideVector inner;
  for (const Index k : set_) inner.push_back(rows_.inner(p, k));
  part.y = solve_lower(factor_, inner);
  part.rest -= dot(part.y.data(), part.y.data(), static_cast<Index>(part.y.size()));
  part.rest /= size;  // the share of the row
  if (part.rest.sign() <= 0 || part.rest.exponent() <= kDependent) {
    part.rest = Wide();
  } else {
    part.rest *= size;
  }
  part.r = solve_transposed(factor_, part.y);
  return part;
}

void WideActiveSet::push(Index p, Split split) {
  WideVector inner;
  for (const Index k : set_) inner.push_back(rows_.inner(p, k));
  inner.push_back(rows_.inner(p, p));
  gram_.push_back(std::move(inner));
  split.y.push_back(sqrt(split.rest));
  factor_.push_back(std::move(split.y));
  set_.push_back(p);
  x_.emplace_back();
  member_[at(p)] = 1;
}

/// Removes row j of the set and factorises the rows after it again.
void WideActiveSet::drop(Index j) {
  member_[at(set_[at(j)])] = 0;
  set_.erase(set_.begin() + j);
  x_.erase(x_.begin() + j);
  gram_.erase(gram_.begin() + j);
  factor_.erase(factor_.begin() + j);
  for (std::size_t i = at(j); i < set_.size(); ++i) {
    gram_[i].erase(gram_[i].begin() + j);
    WideVector& row = factor_[i];
    row.resize(i + 1);
    for (std::size_t l = at(j); l < i; ++l)
      row[l] = (gram_[i][l] - dot(row.data(), factor_[l].data(), static_cast<Index>(l))) / factor_[l][l];
    row[i] = sqrt(gram_[i][i] - dot(row.data(), row.data(), static_cast<Index>(i)));
  }
}

/// Row p and −r on the set cancel, their right-hand sides do not.
void WideActiveSet::keep_conflict(Index p, const Split& split, int sign) {
  for (std::size_t j = 0; j < set_.size(); ++j) {
    const Wide weight = split.r[j] * Wide(-sign);
    if (free_[at(set_[j])] == 0 && weight.sign() < 0) continue;
    lambda_[at(rows_.row(set_[j]))] = weight.shifted(-rows_.exponent(set_[j]));
  }
  lambda_[at(rows_.row(p))] = Wide(sign).shifted(-rows_.exponent(p));
  W_.assign(at(rows_.d() * rows_.dz()), Wide());
}

void WideActiveSet::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W.resize(rows_.d(), rows_.dz());
  for (Index k = 0; k < W.size(); ++k) W.data()[k] = W_[at(k)].to_double();
  lambda.setZero(rows_of_problem_);
  slong largest = 0;
  bool any = false;
  for (const Wide& weight : lambda_) {
    if (weight.is_zero()) continue;
    largest = any ? std::max(largest, weight.exponent()) : weight.exponent();
    any = true;
  }
  for (Index k = 0; k < rows_of_problem_; ++k) lambda(k) = lambda_[at(k)].shifted(-largest).to_double();
}

}  // namespace attsvm::internal
