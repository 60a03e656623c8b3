#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "margin/nuclear_face.h"
#include "margin/nuclear_interior_point.h"

namespace attsvm {

/// Solves min ‖W‖_* over the rows of a problem of up to some thousand rows: an interior point method until rank and
/// active rows can be read off, then Newton's method on that face to rounding. Memory is kept.
class NuclearSolver {
 public:
  enum class Outcome : std::uint8_t {
    converged,
    stopped,  ///< asked to stop
    stalled,  ///< no progress any more, or the problem is too large
  };

  /// `frobenius`: the answer of the same problem in that norm, not infeasible. `stop` sees every iteration.
  Outcome solve(const MarginProblem& problem, const MarginSolution& frobenius, double tolerance,
                const std::function<bool(const SolveProgress&)>& stop);

  /// K, Q with W = K Qᵀ, balanced; λ up to a positive factor. Whatever the outcome: the best there is.
  void write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }
  std::string_view method() const { return method_; }

 private:
  void take_frobenius(const MarginProblem& problem, const MarginSolution& frobenius);
  void take_face();
  void take_interior_point();
  double balance() const;
  void export_dual(const double* lambda);

  const MarginProblem* problem_ = nullptr;
  NuclearRows rows_;
  NuclearInteriorPoint interior_;
  NuclearFace face_;
  Eigen::MatrixXd W_;
  Buffer<double> lambda_;
  RowMatrix K_, Q_;
  Eigen::VectorXd dual_;
  Index iterations_ = 0;
  std::string_view method_;
};

}  // namespace attsvm
