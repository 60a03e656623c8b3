#pragma once

#include <Eigen/LU>
#include <optional>

#include "margin/power/schur.h"

namespace attsvm::internal {

/// Newton's method on the face of an optimum in a norm of power 1 or ∞: some rows are met with equality, and some
/// values of the matrix in the ball (see ExtremePath) are on its boundary. Both are guessed again at every step: rows
/// from multiplier and slack, values from x + θy, of which x is the nearest matrix in the ball. For entrywise norms the
/// equations are linear, and the right guess is solved in one step. Keeps its memory between calls.
template <class Real>
class ExtremeFace {
 public:
  using Vector = PowerVector<Real>;

  /// From W and λ near the optimum, in the units of `rows`. A row counts as active where λ_k > balance·(slack of k).
  /// `equations`: memory. `vertex`: only if rows and entries determine both, which takes a fraction of the time. False:
  /// did not converge; the results must not be read.
  bool solve(const PowerRows<Real>& rows, const Norm& norm, const Vector& w, const Vector& lambda, Real radius,
             Real balance, bool vertex, PowerSchur<Real>& equations);

  const Vector& w() const { return w_; }
  const Vector& lambda() const { return lambda_; }
  /// Whether the face holds no other W; empty if multipliers, slack or values are too small to tell the face.
  std::optional<bool> unique() const { return unique_; }

 private:
  void choose_rows(Real balance);
  void choose_values();
  bool step_on_entries();
  bool factor_entries();
  bool step_with_prox();
  void pick(const Vector& all, Vector& picked) const;
  void note_uniqueness();
  const Vector& x() const { return of_weights_ ? w_ : a_; }
  const Vector& y() const { return of_weights_ ? a_ : w_; }

  const PowerRows<Real>* rows_ = nullptr;
  Frame<Real> frame_;        // of x + θy
  IndexList active_, free_;  // rows met with equality; coordinates in which W is free and A is given
  Vector w_, a_, lambda_, value_, point_;
  Vector flexible_, missing_, given_;  // other coordinates: ΔW = missing + flexible·ΔA; free ones: ΔA = given
  Vector edge_;                        // ΔW per Δρ
  Vector change_, coordinates_, right_, along_, reply_;
  PowerSchur<Real>* schur_ = nullptr;
  IndexList factored_rows_, factored_entries_;  // of lu_
  Vector factored_edge_;                        // the same
  Eigen::PartialPivLU<PowerColumns<Real>> lu_;
  Real radius_ = 1, theta_ = 1, strict_ = 0;
  Real moved_ = 0, off_ = 0;  // relative size of the last step; largest entry of clip(M) − x
  bool of_weights_ = true, determined_ = false;
  std::optional<bool> unique_;
};

extern template class ExtremeFace<double>;
extern template class ExtremeFace<long double>;

}  // namespace attsvm::internal
