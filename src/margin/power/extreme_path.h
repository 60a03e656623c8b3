#pragma once

#include <limits>

#include "margin/power/schur.h"

namespace attsvm::internal {

/// Solves min ‖W‖ over some rows in the norms of power ∞ (largest entry, spectral) and 1 (sum of entries), by a
/// primal-dual interior point method with predictor and corrector.
///
/// One of W and A = A(λ) lies in a ball, ‖x‖_∞ ≤ ρ: for P = ∞ it is W, and ρ is the objective; for P = 1 it is A, and
/// ρ = 1. The other is y = p − q, where p, q ≥ 0 are the multipliers of x ≤ ρ and of −x ≤ ρ:
///   p (ρ − x) = q (ρ + x) = λ s = μ → 0,   δ_kᵀWζ_k − s_k = b_k,   and for P = ∞ also Σ (p + q) = 1.
/// For the spectral norm x, p and q belong to singular values. There the method knows y as a matrix only, and takes for
/// p and q what its diagonal says in the frame of x, as if y had the same singular vectors; on the path it has.
/// Keeps its memory between calls.
template <class Real>
class ExtremePath {
 public:
  using Vector = PowerVector<Real>;

  /// W and dual: an answer of the same problem in another norm, not zero. `norm`: max, l1 or spec.
  void load(const PowerRows<Real>& rows, const Norm& norm, const RowMatrix& W, const Eigen::VectorXd& dual);
  /// Goes on with more rows, from the present W. `dual` and `slack`: of the present point, zero for new rows.
  void widen(const PowerRows<Real>& rows, const RowMatrix& W, const Eigen::VectorXd& dual,
             const Eigen::VectorXd& slack);
  /// One iteration. False: no more progress.
  bool step();

  /// Complementarity and violated rows together, relative to the objective, and what W has to grow by to meet the rows.
  double gap() const;
  /// The same without that growth: it is small near the face, even where few rows are missed by much.
  double gap_on_path() const { return static_cast<double>(gap_); }
  Real objective() const;                ///< of the present W, which may miss rows
  Real bound() const { return bound_; }  ///< a lower bound on the norm of W that meets the rows
  Real ratio() const;                    ///< of multipliers to slack that separates active rows from others
  const Vector& w() const { return w_; }
  const Vector& lambda() const { return lambda_; }
  const Vector& slack() const { return slack_; }
  Real radius() const { return radius_; }
  /// The memory of Newton's equations, which are formed afresh in every step.
  PowerSchur<Real>& equations() { return schur_; }

 private:
  using Matrix = PowerMatrix<Real>;

  struct Direction {
    Vector lambda, slack, w, a;  // w and a as matrices; a only where x is a
    Vector x, p, q;              // per value
    Real radius = 0;
  };

  void shape(const PowerRows<Real>& rows);
  const Vector& x() const { return of_weights_ ? w_ : a_; }
  const Vector& y() const { return of_weights_ ? a_ : w_; }
  void split();
  void measure();
  Real lower_bound() const;
  Real distance_from_path();
  bool linearise();
  void find(Real target, const Direction* affine, Direction& way);
  Real primal_step(const Direction& way, Real most);
  Real dual_step(const Direction& way, Real most);
  Real ball_step(const Direction& way, Real most);
  Real multiplier_step(const Direction& way, Real most) const;
  Real mean_product(const Direction& way, Real primal, Real dual) const;
  void take(const Direction& way, Real primal, Real dual);

  const PowerRows<Real>* rows_ = nullptr;
  Frame<Real> frame_;  // of x
  NormFamily family_ = NormFamily::entrywise;
  bool of_weights_ = true, tangent_ = false;
  Index m_ = 0, values_ = 0;
  Real radius_ = 1, mu_ = 0, gap_ = std::numeric_limits<Real>::infinity(), bound_ = 0, count_ = 1;
  Vector w_, a_, lambda_, slack_, value_;
  Vector p_, q_;                          // per value
  Vector low_, high_;                     // ρ − x, ρ + x
  Vector flexible_, border_;              // Δw = … + flexible·Δa + border·Δρ, in the coordinates of the frame
  Vector steep_low_, steep_high_, tilt_;  // p/(ρ−x), q/(ρ+x) and their difference
  Vector target_p_, target_q_;            // of p and q where the step ends
  Vector damping_;                        // s/λ
  Vector other_, missing_, coordinates_, right_, border_reply_;
  Vector border_weights_;  // Δw per Δρ
  Real border_slope_ = 0;
  PowerSchur<Real> schur_;
  Direction affine_, way_;
};

extern template class ExtremePath<double>;
extern template class ExtremePath<long double>;

}  // namespace attsvm::internal
