#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm::internal {

/// Solves min (1/p)‖W‖_p^p over the rows of a problem, 1 < p < ∞, by a primal-dual path with predictor and corrector:
///   A(λ) = φ(W),  δ_kᵀWζ_k − s_k = b_k,  s ≥ 0,  λ ≥ 0,  λs = 0,   φ(w) = sign(w)|w|^{p−1}.
/// The *curve* is whichever of φ and its inverse is smooth at zero: y = sign(x)|x|^{r−1}, r = max(p, p/(p−1)), with x =
/// w for p ≥ 2 and x = A(λ) for p < 2. It is flat at zero, where Newton's equations would be singular, so the path uses
/// x(|x|^r + ε)^{(r−2)/r} instead, with an ε that falls with λs. The barrier of the cone |w|^p ≤ t does the same, and
/// it changes the optimum by at most ε per entry. In x the path minimises a convex function; a line search on it
/// ensures that every step gets closer. Keeps its memory between calls.
template <class Real>
class EntrywisePath {
 public:
  /// Called at every step with the objective and the bound; true stops.
  using Stop = std::function<bool(double objective, double bound)>;

  /// Starts at the Frobenius answer of the same problem, which is not zero. `centrality`: λs there, in shares of the
  /// objective.
  void load(const MarginProblem& problem, double power, const MarginSolution& frobenius, double centrality);
  /// Follows the path until rounding ends it. False: asked to stop.
  bool follow(const Stop& stop);

  Index iterations() const { return iterations_; }
  double gap() const { return best_gap_; }  ///< of the best answer, including its violation of the rows
  /// The best W and λ (up to a positive factor).
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

 private:
  using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  void load_rows(const MarginProblem& problem, const MarginSolution& frobenius);
  void start(const MarginSolution& frobenius, Real centrality);
  Real best_dual_scale();
  void trace(bool moved);
  void linearize();
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
  Index m_ = 0, unknowns_ = 0, inequalities_ = 0, rows_of_problem_ = 0, d_ = 0, dz_ = 0;
  Real scale_ = 1;     // W in the problem / W here
  Buffer<Index> row_;  // number in the problem
  Buffer<std::uint8_t> equal_;
  Vector size_;  // of the rows, which have unit length here
  Matrix R_, scaled_, schur_;
  Vector b_, w_, a_, lambda_, slack_, value_;  // a = A(λ), value = rows of w
  Real smoothing_ = 0;                         // ε
  Vector power_, curve_, slope_;               // |x|^r, and the smoothed curve and its slope at x
  Vector flexible_, missing_, damping_;        // Δw = missing + flexible·A(Δλ), Δs = … − damping·Δλ
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

extern template class EntrywisePath<double>;
extern template class EntrywisePath<long double>;

}  // namespace attsvm::internal
