#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm {

/// Solves min (1/p)‖W‖_p^p over the rows of a problem, p > 1, by following a path with predictor and corrector:
///   A(λ) = φ(W),  δ_kᵀWζ_k − s_k = b_k,  s ≥ 0,  λ ≥ 0,  λs = 0,   φ(w) = sign(w)|w|^{p−1}.
/// Of φ and its inverse the one that is smooth at zero, x ↦ sign(x)|x|^{r−1} with r = max(p, p/(p−1)), is the *curve*.
/// At zero it is flat, so that Newton's equations are singular; the path has x(x² + ε²)^{(r−2)/2} in its place, and ε^r
/// falls with λs, as it would in the barrier of the cone {|w|^p ≤ t}. Memory is kept.
template <class Real>
class EntrywisePath {
 public:
  /// What a step of the path is told: the objective and the bound of the best answer. True: stop.
  using Stop = std::function<bool(double objective, double bound)>;

  /// Prepares for min (1/p)‖W‖_p^p from the Frobenius answer of the same problem, which is not zero.
  void load(const MarginProblem& problem, double power, const MarginSolution& frobenius);
  /// Follows the path until rounding ends it. False: asked to stop.
  bool follow(const Stop& stop);

  Index iterations() const { return iterations_; }
  double gap() const { return best_gap_; }  ///< of the best answer, its violation of the rows included
  /// The best W and λ (up to a positive factor).
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

 private:
  using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  void start(const MarginSolution& frobenius);
  void trace();
  void linearize();
  bool factorize();
  void solve_schur(const Vector& right, Vector& x);
  void direction(Real target, bool corrected);
  Real reach(const Vector& x, const Vector& dx) const;
  Real mean_product(Real step) const;
  Real incline(Real step, Real target) const;
  void recenter(Real mean);
  void judge();

  Real p_ = 2, q_ = 2, r_ = 2;
  bool primal_ = true;  // the curve is φ, not its inverse
  Index m_ = 0, unknowns_ = 0, inequalities_ = 0, rows_of_problem_ = 0, d_ = 0, dz_ = 0;
  Real scale_ = 1;     // W in the problem / W here
  Buffer<Index> row_;  // number in the problem
  Buffer<std::uint8_t> equal_;
  Vector size_;  // of the rows, which have unit length here
  Matrix R_, scaled_, schur_;
  Vector b_, w_, a_, lambda_, slack_, value_;
  Real smoothing_ = 0;           // ε^r
  Vector curve_, slope_;         // of the smoothed curve at x
  Vector flexible_, missing_;    // Δw = missing + flexible·A(Δλ)
  Real distance_ = 0;            // of (w, A(λ)) from the curve
  Vector damping_, right_, rest_, goal_, product_, better_, conjugate_;
  Vector dw_, da_, dlambda_, dslack_, affine_dlambda_, affine_dslack_;
  Vector old_w_, old_a_;
  Vector best_w_, best_lambda_;
  Real objective_ = 0, bound_ = 0;
  double best_gap_ = 0;
  Index iterations_ = 0;
};

extern template class EntrywisePath<double>;
extern template class EntrywisePath<long double>;

}  // namespace attsvm
