#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm {

/// Solves min (1/p)‖W‖_p^p over the rows of a problem, p > 1, by Mehrotra's predictor and corrector on
///   sign(W)|W|^{p−1} = A(λ),  δ_kᵀWζ_k − s_k = b_k,  s ≥ 0,  λ ≥ 0,  λs = 0.
/// The rows are held as dense vectors and the equations for λ as a dense matrix, which limits the size. Memory is kept.
class EntrywiseSolver {
 public:
  enum class Outcome : std::uint8_t {
    converged,
    stopped,  ///< asked to stop
    stalled,  ///< no progress any more, or the problem is too large
  };

  /// `frobenius`: the answer of the same problem in that norm, not infeasible. `stop` sees every iteration.
  Outcome solve(const MarginProblem& problem, double power, const MarginSolution& frobenius, double tolerance,
                const std::function<bool(const SolveProgress&)>& stop);
  /// The best W and λ (up to a positive factor) so far.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }
  std::string_view method() const { return method_; }

 private:
  void load(const MarginProblem& problem, const MarginSolution& frobenius);
  void linearize();
  bool factorize();
  void direction(double target, bool corrected);
  double standing();

  double p_ = 2, q_ = 2;
  Index m_ = 0, unknowns_ = 0;
  Norm norm_;
  double scale_ = 1;   // W in the problem / W here
  Buffer<Index> row_;  // number in the problem
  Buffer<std::uint8_t> equal_;
  Eigen::VectorXd size_;  // of the rows, which have unit length here
  RowMatrix R_, scaled_, schur_;
  Eigen::VectorXd b_, w_, lambda_, slack_, weighted_, value_, flexible_, missing_;
  Eigen::VectorXd dw_, dlambda_, dslack_, affine_dlambda_, affine_dslack_, goal_, right_;
  RowMatrix entries_, best_W_;
  Eigen::VectorXd best_dual_;
  double objective_ = 0, bound_ = 0, best_gap_ = 0;
  Index iterations_ = 0, rows_of_problem_ = 0, d_ = 0, dz_ = 0;
  std::string_view method_;
};

}  // namespace attsvm
