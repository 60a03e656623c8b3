#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "margin/power/schur.h"

namespace attsvm::internal {

/// Solves min (1/p)‖W‖_p^p over the rows of a problem, 1 < p < ∞, for the entrywise or the Schatten norm, by a
/// primal-dual path with predictor and corrector:
///   A(λ) = φ(W),  δ_kᵀWζ_k − s_k = b_k,  s ≥ 0,  λ ≥ 0,  λs = 0,
/// where φ applies sign(w)|w|^{p−1} to the entries or to the singular values.
/// The *curve* is whichever of φ and its inverse is smooth at zero: y = sign(x)|x|^{r−1}, r = max(p, p/(p−1)), with x =
/// w for p ≥ 2 and x = A(λ) for p < 2. It is flat at zero, where Newton's equations would be singular, so the path uses
/// x(|x|^r + ε)^{(r−2)/r} instead, with an ε that falls with λs. The barrier of the cone |w|^p ≤ t does the same, and
/// it changes the optimum by at most ε per entry. In x the path minimises a convex function; a line search on it
/// ensures that every step gets closer. Keeps its memory between calls.
template <class Real>
class PowerPath {
 public:
  /// Called at every step with the objective and the bound; true stops.
  using Stop = std::function<bool(double objective, double bound)>;

  /// Starts at an answer of the same problem in another norm, not zero. `rows`: those to meet; null: all. `centrality`:
  /// λs at the start, in shares of the objective.
  void load(const MarginProblem& problem, const Norm& norm, const RowMatrix& W, const Eigen::VectorXd& dual,
            const IndexList* rows, double centrality);
  /// Follows the path until rounding ends it. False: asked to stop.
  bool follow(const Stop& stop);

  Index iterations() const { return iterations_; }
  double gap() const { return best_gap_; }  ///< of the best answer, including its violation of the rows
  /// The best W and λ (up to a positive factor).
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

 private:
  using Vector = PowerVector<Real>;

  void start(const RowMatrix& W, const Eigen::VectorXd& dual, Real centrality);
  Real best_dual_scale();
  void trace(bool moved);
  void linearize();
  void linearize_off_diagonal(const Vector& y);
  void bend(const Vector& change, Vector& answer);
  bool factorize();
  void direction(Real target, bool corrected);
  void refine();
  Real choose_direction();
  Real search(Real target);
  Real merit_slope(Real step, Real target) const;
  void recenter(Real mean);
  Real reach() const;
  Real mean_product(Real step) const;
  void judge();

  Real p_ = 2, q_ = 2, r_ = 2;
  bool primal_ = true;  // the curve is φ, not its inverse
  bool steep_ = false;
  Index m_ = 0, unknowns_ = 0, inequalities_ = 0;
  PowerRows<Real> rows_;
  Frame<Real> frame_;  // of x
  PowerSchur<Real> schur_;
  Vector w_, a_, lambda_, slack_, value_;  // a = A(λ), value = rows of w
  Real smoothing_ = 0;                     // ε
  Vector power_, ratio_,
      slope_;                  // of the values of x: |x|^r, and the smoothed curve there, divided by x, and its slope
  Vector curve_;               // the smoothed curve at x
  Vector flexible_, missing_;  // Δw = missing + flexible·A(Δλ), flexible in the coordinates of the frame
  Vector gap_to_curve_, coordinates_, damping_;  // Δs = … − damping·Δλ
  Vector goal_, rest_, better_, conjugate_, product_, more_a_, more_w_;
  Vector dw_, da_, dlambda_, dslack_, affine_dlambda_, affine_dslack_;
  Vector old_w_, old_a_;
  Real center_ = 1, last_step_ = 1;
  Vector best_w_, best_lambda_;
  Real objective_ = 0, bound_ = 0;
  Real mismatch_ = 0;  // Σ |w|^p/p + |a|^q/q − aw: the share of the gap that comes from the distance to the curve
  double best_gap_ = 0;
  Index iterations_ = 0;
};

extern template class PowerPath<double>;
extern template class PowerPath<long double>;

}  // namespace attsvm::internal
