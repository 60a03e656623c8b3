#include "margin/wide_face.h"

#include <algorithm>
#include <cmath>

namespace attsvm {
namespace {

constexpr Index kMostUnknowns = 120;
constexpr Index kSteps = 60, kHalvings = 12, kChanges = 8;
constexpr slong kConverged = -200;  // log₂ of the residual, in units of ‖W‖ = ‖A‖ = 1
constexpr slong kSign = -120;       // log₂ of what a multiplier or slack on the wrong side may be
constexpr slong kBlocked = -10;     // log₂ of the part of a step after which a multiplier that turns negative leaves
constexpr slong kRidge = -320;      // log₂, relative: the equations do not fix K and Q up to a rotation of both

std::size_t at(Index k) { return static_cast<std::size_t>(k); }

Wide norm(const WideVector& x) { return sqrt(dot(x.data(), x.data(), static_cast<Index>(x.size()))); }

bool exceeds(const Wide& x, slong exponent) { return !x.is_zero() && x.exponent() > exponent; }

}  // namespace

bool WideFace::suits(const MarginProblem& problem, Index rank) {
  return rank > 0 && (problem.d() + problem.dz()) * rank + problem.rows() <= kMostUnknowns;
}

bool WideFace::solve(const MarginProblem& problem, const MarginSolution& near, Index rank,
                     const std::function<bool()>& stop) {
  rank_ = rank;
  start(problem, near);
  for (int change = 0; change < kChanges; ++change) {
    if (!descend(stop)) return false;
    if (!change_rows()) return true;
  }
  return false;
}

/// Rows are active where the share of their multiplier outweighs their slack, relative to what they ask for.
void WideFace::start(const MarginProblem& problem, const MarginSolution& near) {
  rows_.load(problem);
  rows_of_problem_ = problem.rows();
  iterations_ = 0;
  scale_ = std::exp2(std::ilogb(near.objective));
  rhs_.clear();
  equal_.clear();
  active_.clear();
  double heaviest = 0;
  const auto weight = [&](Index k) { return std::ldexp(near.dual(rows_.row(k)), static_cast<int>(rows_.exponent(k))); };
  const auto slack = [&](Index k) {
    const Index row = rows_.row(k);
    const double rhs = std::abs(problem.rhs(row));
    return rhs > 0 ? near.slack(row) / rhs : std::ldexp(near.slack(row) / scale_, -static_cast<int>(rows_.exponent(k)));
  };
  for (Index k = 0; k < rows_.count(); ++k) {
    rhs_.push_back(Wide(problem.rhs(rows_.row(k)) / scale_).shifted(-rows_.exponent(k)));
    equal_.push_back(problem.equal(rows_.row(k)) ? 1 : 0);
    heaviest = std::max(heaviest, std::abs(weight(k)));
  }
  for (Index k = 0; k < rows_.count(); ++k) {
    if (equal_[at(k)] != 0 || weight(k) > slack(k) * heaviest) active_.push_back(k);
  }
  x_.clear();
  const double root = std::sqrt(scale_);
  for (Index a = 0; a < rows_.d(); ++a) {
    for (Index j = 0; j < rank_; ++j) x_.emplace_back(near.K(a, j) / root);
  }
  for (Index b = 0; b < rows_.dz(); ++b) {
    for (Index j = 0; j < rank_; ++j) x_.emplace_back(near.Q(b, j) / root);
  }
  for (const Index k : active_) x_.emplace_back(weight(k));
}

/// A(λ)Q − K, A(λ)ᵀK − Q, and what the rows miss.
void WideFace::residual(const WideVector& x, WideVector& F) const {
  const Index d = rows_.d(), dz = rows_.dz(), r = rank_;
  F.assign(at(unknowns()), Wide());
  for (Index k = 0; k < d * r; ++k) F[at(k)] -= K(x)[k];
  for (Index k = 0; k < dz * r; ++k) F[at(d * r + k)] -= Q(x)[k];
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Index k = active_[i];
    const Wide *delta = rows_.delta(k), *zeta = rows_.zeta(rows_.group(k)), &weight = lambda(x)[i];
    Wide value;
    for (Index j = 0; j < r; ++j) {
      Wide left, right;  // (Kᵀδ)_j, (Qᵀζ)_j
      for (Index a = 0; a < d; ++a) left.add_product(delta[a], K(x)[a * r + j]);
      for (Index b = 0; b < dz; ++b) right.add_product(zeta[b], Q(x)[b * r + j]);
      value.add_product(left, right);
      left *= weight;
      right *= weight;
      for (Index a = 0; a < d; ++a) F[at(a * r + j)].add_product(delta[a], right);
      for (Index b = 0; b < dz; ++b) F[at(d * r + b * r + j)].add_product(zeta[b], left);
    }
    F[at((d + dz) * r) + i] = value - rhs_[at(k)];
  }
}

void WideFace::linearise() {
  const Index d = rows_.d(), dz = rows_.dz(), r = rank_, n = unknowns();
  J_.assign(at(n), WideVector(at(n)));
  for (Index k = 0; k < (d + dz) * r; ++k) J_[at(k)][at(k)] = -1;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Index k = active_[i];
    const std::size_t column = at((d + dz) * r) + i;
    const Wide *delta = rows_.delta(k), *zeta = rows_.zeta(rows_.group(k)), &weight = lambda(x_)[i];
    for (Index j = 0; j < r; ++j) {
      Wide left, right;
      for (Index a = 0; a < d; ++a) left.add_product(delta[a], K(x_)[a * r + j]);
      for (Index b = 0; b < dz; ++b) right.add_product(zeta[b], Q(x_)[b * r + j]);
      for (Index a = 0; a < d; ++a) {
        J_[at(a * r + j)][column] = delta[a] * right;
        J_[column][at(a * r + j)] = delta[a] * right;
      }
      for (Index b = 0; b < dz; ++b) {
        J_[at(d * r + b * r + j)][column] = zeta[b] * left;
        J_[column][at(d * r + b * r + j)] = zeta[b] * left;
      }
      for (Index a = 0; a < d; ++a) {  // A
        const Wide entry = weight * delta[a];
        for (Index b = 0; b < dz; ++b) {
          J_[at(a * r + j)][at(d * r + b * r + j)].add_product(entry, zeta[b]);
          J_[at(d * r + b * r + j)][at(a * r + j)].add_product(entry, zeta[b]);
        }
      }
    }
  }
  // J Jᵀ and its factor, a little ridge where rotations leave it singular.
  L_.assign(at(n), {});
  for (Index i = 0; i < n; ++i) {
    WideVector& row = L_[at(i)];
    for (Index j = 0; j < i; ++j)
      row.push_back((dot(J_[at(i)].data(), J_[at(j)].data(), n) - dot(row.data(), L_[at(j)].data(), j)) /
                    L_[at(j)][at(j)]);
    const Wide square = dot(J_[at(i)].data(), J_[at(i)].data(), n);
    const Wide rest = square - dot(row.data(), row.data(), i);
    const Wide least = (square + Wide(1)).shifted(kRidge);
    row.push_back(sqrt(rest < least ? least : rest));
  }
}

/// dx = −Jᵀ (J Jᵀ)⁻¹ F: the shortest step that solves the linear equations.
bool WideFace::step(const WideVector& F, WideVector& dx) {
  const Index n = unknowns();
  WideVector y(at(n));
  for (Index i = 0; i < n; ++i) y[at(i)] = (F[at(i)] - dot(L_[at(i)].data(), y.data(), i)) / L_[at(i)][at(i)];
  for (Index i = n - 1; i >= 0; --i) {
    y[at(i)] /= L_[at(i)][at(i)];
    for (Index j = 0; j < i; ++j) y[at(j)] -= L_[at(i)][at(j)] * y[at(i)];
  }
  dx.assign(at(n), Wide());
  for (Index i = 0; i < n; ++i) {
    const Wide weight = -y[at(i)];
    for (Index j = 0; j < n; ++j) dx[at(j)].add_product(weight, J_[at(i)][at(j)]);
  }
  return !exceeds(norm(dx), 40);
}

/// The active inequality whose multiplier turns negative within a small part of the step: of two rows that nearly
/// coincide only one is met with equality. The number of active rows if there is none.
std::size_t WideFace::blocking(const WideVector& dx) const {
  std::size_t first = active_.size();
  Wide least = Wide(1).shifted(kBlocked);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Wide &weight = lambda(x_)[i], &change = lambda(dx)[i];
    if (equal_[at(active_[i])] != 0 || weight.sign() <= 0 || change.sign() >= 0) continue;
    Wide share = -(weight / change);
    if (!(share < least)) continue;
    least = std::move(share);
    first = i;
  }
  return first;
}

/// Newton's steps, halved until the residual falls.
bool WideFace::descend(const std::function<bool()>& stop) {
  WideVector F, dx, trial, trial_F;
  residual(x_, F);
  for (Index count = 0; count < kSteps; ++count, ++iterations_) {
    const Wide before = norm(F);
    if (!exceeds(before, kConverged)) return true;
    if (stop()) return false;
    linearise();
    if (!step(F, dx)) return false;
    if (const std::size_t i = blocking(dx); i < active_.size()) {
      active_.erase(active_.begin() + static_cast<Index>(i));
      x_.erase(x_.end() - static_cast<Index>(active_.size() + 1 - i));
      residual(x_, F);
      continue;
    }
    bool fell = false;
    for (Index half = 0; half < kHalvings && !fell; ++half) {
      trial = x_;
      for (std::size_t k = 0; k < trial.size(); ++k) trial[k] += dx[k].shifted(-half);
      residual(trial, trial_F);
      fell = norm(trial_F) < before;
    }
    if (!fell) return false;
    x_.swap(trial);
    F.swap(trial_F);
  }
  return false;
}

/// Rows that pull the wrong way leave, rows that are missed join. False: there is none.
bool WideFace::change_rows() {
  const Index d = rows_.d(), dz = rows_.dz(), r = rank_;
  WideVector W(at(d * dz)), value;
  for (Index a = 0; a < d; ++a) {
    for (Index b = 0; b < dz; ++b) W[at(a * dz + b)] = dot(K(x_) + a * r, Q(x_) + b * r, r);
  }
  rows_.values(W, value);
  std::vector<Index> next;
  WideVector x(x_.begin(), x_.begin() + (d + dz) * r);
  bool changed = false;
  for (Index k = 0, i = 0; k < rows_.count(); ++k) {
    const bool in = at(i) < active_.size() && active_[at(i)] == k;
    const Wide weight = in ? lambda(x_)[i++] : Wide();
    const Wide missing = rhs_[at(k)] - value[at(k)];
    const bool keep = in && (equal_[at(k)] != 0 || weight.sign() >= 0 || !exceeds(weight, kSign));
    const bool joins = !in && missing.sign() > 0 && exceeds(missing, kSign);
    changed = changed || (in && !keep) || joins;
    if (!keep && !joins) continue;
    next.push_back(k);
    x.push_back(weight);
  }
  active_ = std::move(next);
  x_ = std::move(x);
  return changed;
}

void WideFace::write(RowMatrix& K_out, RowMatrix& Q_out, Eigen::VectorXd& dual) const {
  const double root = std::sqrt(scale_);
  K_out.resize(rows_.d(), rank_);
  Q_out.resize(rows_.dz(), rank_);
  for (Index k = 0; k < K_out.size(); ++k) K_out.data()[k] = K(x_)[k].to_double() * root;
  for (Index k = 0; k < Q_out.size(); ++k) Q_out.data()[k] = Q(x_)[k].to_double() * root;
  dual.setZero(rows_of_problem_);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Wide weight = lambda(x_)[i].shifted(-rows_.exponent(active_[i]));
    dual(rows_.row(active_[i])) = weight.to_double();
  }
}

}  // namespace attsvm
