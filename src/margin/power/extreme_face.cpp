#include "margin/power/extreme_face.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kSteps = 12;
constexpr double kDone = 1e-12;                   // relative size of a step that ends the iteration,
constexpr double kGoodEnough = 1e-9;              // or that must have been reached when it ends
constexpr double kTinyPivot = 1e-11;              // relative pivot of equations that are not determined
constexpr double kStiffest = 1e4, kSoft = 1e-10;  // of the proximal terms, for rows of length one and W of that size
constexpr Index kMostRank = 1000;  // rows and columns of which a rank-revealing factorisation is affordable
constexpr double kStrict = 1e-8;   // multipliers, slack and distances from the boundary that count as positive

template <class Real>
Real smallest_pivot(const PowerColumns<Real>& LU) {
  const auto pivots = LU.diagonal().cwiseAbs();
  return pivots.size() == 0 ? Real(1)
                            : pivots.minCoeff() / std::max(pivots.maxCoeff(), std::numeric_limits<Real>::min());
}

}  // namespace

template <class Real>
bool ExtremeFace<Real>::solve(const PowerRows<Real>& rows, const Norm& norm, const Vector& w, const Vector& lambda,
                              Real radius, Real balance, bool vertex, PowerSchur<Real>& equations) {
  rows_ = &rows;
  schur_ = &equations;
  of_weights_ = norm.power == kInfinity;
  frame_.shape(norm.family, rows.left(), rows.right());
  w_ = w;
  lambda_ = lambda;
  radius_ = radius;
  unique_.reset();
  determined_ = false;
  rows.products().weigh(lambda_, a_);
  const Real size = frame_.values_of(y()).cwiseAbs().maxCoeff();
  if (!(size > 0)) return false;
  theta_ = radius_ / size;
  for (Index step = 0; step < kSteps; ++step) {
    choose_rows(balance);
    if (active_.size() == 0) return false;
    choose_values();
    if (!(frame_.entrywise() && step_on_entries()) && (vertex || !step_with_prox())) return false;
    if (!std::isfinite(moved_)) return false;
    if (moved_ < kDone) break;
  }
  if (!(moved_ < kGoodEnough)) return false;
  note_uniqueness();
  return true;
}

/// Takes the multipliers of rows that are not active to zero.
template <class Real>
void ExtremeFace<Real>::choose_rows(Real balance) {
  rows_->products().values(w_, value_);
  active_.clear();
  strict_ = std::numeric_limits<Real>::infinity();
  const Real heaviest = std::max(lambda_.cwiseAbs().maxCoeff(), std::numeric_limits<Real>::min());
  for (Index k = 0; k < rows_->count(); ++k) {
    const Real slack = value_(k) - rows_->b()(k);
    if (rows_->equal(k) || lambda_(k) > balance * slack) {
      active_.push(k);
      if (!rows_->equal(k)) strict_ = std::min(strict_, lambda_(k) / heaviest);
    } else {
      lambda_(k) = 0;
      strict_ = std::min(strict_, slack * balance / heaviest);
    }
  }
  rows_->products().weigh(lambda_, a_);
}

/// Which values are on the boundary, and how W and A change together: with X = clip(M), M = x + θy, and κ the
/// derivative of clip, (1 − κ)Δx = κθΔy + Δρ·edge + (clip(M) − x).
template <class Real>
void ExtremeFace<Real>::choose_values() {
  point_ = x() + theta_ * y();
  frame_.take(point_);
  const Vector& m = frame_.values();
  const auto clip = [&](Real value) { return std::clamp(value, -radius_, radius_); };
  const auto on_edge = [&](Index i) { return std::abs(m(i)) > radius_; };
  Vector kappa = Vector::Zero(frame_.size());
  edge_.setZero(frame_.size());
  frame_.into(x(), coordinates_);
  coordinates_ = -coordinates_;
  for (Index i = 0; i < m.size(); ++i) {
    const Index at = frame_.diagonal(i);
    coordinates_(at) += clip(m(i));
    kappa(at) = on_edge(i) ? 0 : 1;
    if (on_edge(i)) edge_(at) = std::copysign(Real(1), m(i));
    strict_ = std::min(strict_, std::abs(std::abs(m(i)) - radius_) / radius_);
  }
  frame_.for_each_off_diagonal(
      [&](Index c, Index i, Index j, int sign) {
        if (!on_edge(i) && !on_edge(j)) {
          kappa(c) = 1;
        } else if (sign > 0 && on_edge(i) && on_edge(j)) {
          kappa(c) = 0;
        } else {
          kappa(c) = (clip(m(i)) - sign * clip(m(j))) / (m(i) - sign * m(j));
        }
      },
      [&](Index c, Index j) { kappa(c) = on_edge(j) ? radius_ / m(j) : 1; });
  off_ = coordinates_.cwiseAbs().maxCoeff();
  free_.clear();
  for (auto* vector : {&flexible_, &missing_, &given_}) vector->setZero(frame_.size());
  for (Index c = 0; c < frame_.size(); ++c) {
    const Real still = 1 - kappa(c), rest = coordinates_(c);
    if (of_weights_ ? kappa(c) == 1 : kappa(c) == 0) {
      given_(c) = of_weights_ ? -rest / theta_ : rest;
      free_.push(c);
    } else if (of_weights_) {
      flexible_(c) = kappa(c) * theta_ / still;
      missing_(c) = rest / still;
    } else {
      flexible_(c) = still / (kappa(c) * theta_);
      missing_(c) = -rest / (kappa(c) * theta_);
    }
  }
}

/// W is free in the entries of the face and in ρ, and as many rows are active: B ΔW = rest of the active rows and BᵀΔλ
/// = rest of A, with the columns of B for the free entries and for ρ.
template <class Real>
bool ExtremeFace<Real>::step_on_entries() {
  const Index rows = active_.size(), columns = free_.size() + (of_weights_ ? 1 : 0);
  const bool known = determined_ && active_ == factored_rows_ && free_ == factored_entries_ &&
                     (!of_weights_ || edge_ == factored_edge_);
  determined_ = false;
  if (rows != columns) return false;
  Vector primal(rows), dual(columns);
  change_ = missing_;
  rows_->products().values(missing_, right_);
  for (Index k = 0; k < rows; ++k) primal(k) = rows_->b()(active_[k]) - value_(active_[k]) - right_(active_[k]);
  for (Index j = 0; j < free_.size(); ++j) dual(j) = given_(free_[j]);
  if (of_weights_) dual(columns - 1) = 1 - a_.dot(edge_);
  if (!known && !factor_entries()) return false;
  determined_ = true;
  const Vector weights = lu_.solve(primal), multipliers = lu_.transpose().solve(dual);
  for (Index j = 0; j < free_.size(); ++j) change_(free_[j]) = weights(j);
  if (of_weights_) {
    change_ += weights(columns - 1) * edge_;
    radius_ += weights(columns - 1);
  }
  const Real heaviest = std::max(lambda_.cwiseAbs().maxCoeff(), std::numeric_limits<Real>::min());
  moved_ =
      std::max(change_.cwiseAbs().maxCoeff() / w_.cwiseAbs().maxCoeff(), multipliers.cwiseAbs().maxCoeff() / heaviest);
  w_ += change_;
  for (Index k = 0; k < rows; ++k) lambda_(active_[k]) += multipliers(k);
  return true;
}

/// B and its factors. False: it is singular.
template <class Real>
bool ExtremeFace<Real>::factor_entries() {
  const Index rows = active_.size();
  PowerColumns<Real> B(rows, rows);
  for (Index j = 0; j < free_.size(); ++j) {
    const Index row = free_[j] / rows_->right(), column = free_[j] % rows_->right();
    for (Index k = 0; k < rows; ++k) B(k, j) = rows_->entry(active_[k], row, column);
  }
  if (of_weights_) {
    rows_->products().values(edge_, along_);
    for (Index k = 0; k < rows; ++k) B(k, rows - 1) = along_(active_[k]);
  }
  lu_.compute(B);
  factored_rows_ = active_;
  factored_entries_ = free_;
  factored_edge_ = edge_;
  return smallest_pivot<Real>(lu_.matrixLU()) > kTinyPivot;
}

/// Newton's equations for Δλ and Δρ, with a proximal term for what they leave open: in free coordinates ΔA = given +
/// ΔW/ stiff, so that ΔW is close to the least change. The equations need not have a solution where the face holds more
/// than one W, so stiffness grows only as the distance from the face falls.
template <class Real>
bool ExtremeFace<Real>::step_with_prox() {
  const Real stiff = theta_ * std::min(Real(kStiffest), radius_ / std::max(off_, std::numeric_limits<Real>::min()));
  for (const Index c : free_) {
    flexible_(c) = stiff;
    missing_(c) = -stiff * given_(c);
  }
  if (!schur_->form(*rows_, frame_, flexible_, Vector(Vector::Constant(active_.size(), kSoft)), &active_)) return false;
  frame_.out_of(missing_, change_);
  rows_->products().values(change_, right_);
  pick(rows_->b() - value_ - right_, reply_);
  schur_->solve(reply_);
  frame_.into(a_, coordinates_);
  Real growth = 0;  // Δρ
  if (of_weights_) {
    frame_.out_of(edge_, change_);
    rows_->products().values(change_, right_);
    pick(right_, along_);
    Vector along_reply = along_;
    schur_->solve(along_reply);
    growth = (along_.dot(reply_) - (1 - coordinates_.dot(edge_))) / along_.dot(along_reply);
    reply_ -= growth * along_reply;
    radius_ += growth;
  }
  right_.setZero(rows_->count());
  for (Index k = 0; k < active_.size(); ++k) right_(active_[k]) = reply_(k);
  rows_->products().weigh(right_, change_);
  frame_.into(change_, coordinates_);
  coordinates_ = coordinates_.cwiseProduct(flexible_) + missing_ + growth * edge_;
  frame_.out_of(coordinates_, change_);
  const Real heaviest = std::max(lambda_.cwiseAbs().maxCoeff(), std::numeric_limits<Real>::min());
  moved_ = std::max(change_.cwiseAbs().maxCoeff() / w_.cwiseAbs().maxCoeff(), right_.cwiseAbs().maxCoeff() / heaviest);
  w_ += change_;
  lambda_ += right_;
  return true;
}

/// The entries of active rows.
template <class Real>
void ExtremeFace<Real>::pick(const Vector& all, Vector& picked) const {
  picked.resize(active_.size());
  for (Index k = 0; k < active_.size(); ++k) picked(k) = all(active_[k]);
}

/// At a strictly complementary optimum every other optimum has the same active rows and the same values on the edge,
/// so it differs only in free coordinates; if the equations determine those, there is no other.
template <class Real>
void ExtremeFace<Real>::note_uniqueness() {
  const Index rows = active_.size(), columns = free_.size() + (of_weights_ ? 1 : 0);
  if (!(strict_ > kStrict)) return;
  if (determined_ || columns == 0 || columns > rows) {
    unique_ = columns <= rows;
  } else if (rows <= kMostRank) {
    PowerColumns<Real> B(rows, columns);
    for (Index k = 0; k < rows; ++k) {
      rows_->write(active_[k], change_);
      frame_.into(change_, coordinates_);
      for (Index j = 0; j < free_.size(); ++j) B(k, j) = coordinates_(free_[j]);
      if (of_weights_) B(k, columns - 1) = coordinates_.dot(edge_);
    }
    Eigen::ColPivHouseholderQR<PowerColumns<Real>> qr;
    qr.setThreshold(kTinyPivot);
    unique_ = qr.compute(B).rank() == columns;
  }
}

template class ExtremeFace<double>;
template class ExtremeFace<long double>;

}  // namespace attsvm::internal
