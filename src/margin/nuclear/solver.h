#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "margin/nuclear/barrier.h"
#include "margin/nuclear/face.h"
#include "margin/nuclear/interior_point.h"
#include "margin/outcome.h"

namespace attsvm::internal {

/// Factors W = K Qᵀ with KᵀK = QᵀQ, except for directions that are noise.
void balanced_factors(const RowMatrix& W, RowMatrix& K, RowMatrix& Q);

/// Solves min ‖W‖_* over the rows of a problem of up to some thousand rows: a barrier path (few rows) or an interior
/// point method until rank and active rows can be read off, then Newton's method on that face to rounding. Keeps its
/// memory between calls.
class NuclearSolver {
 public:
  static constexpr Index kMostRows = 4000;  ///< rows that it solves at once; the Schur matrix has the square of this

  using Outcome = SolveOutcome;

  /// `frobenius`: the answer of the same problem in that norm, not infeasible. `stop` is called in every
  /// iteration and ends the solve by returning true. `only`: the rows to solve for (NuclearRows::load); null: all.
  Outcome solve(const MarginProblem& problem, const MarginSolution& frobenius, double tolerance,
                const std::function<bool(const SolveProgress&)>& stop, const IndexList* only = nullptr);

  /// Newton's method on the face of a nuclear answer of the same or a similar problem. False: it does not converge.
  bool refine(const MarginProblem& problem, const MarginSolution& near);

  /// The best answer, whatever the outcome: K, Q with W = K Qᵀ, balanced; λ up to a positive factor.
  void write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }
  std::string_view method() const { return method_; }

 private:
  void choose_near(const MarginSolution& frobenius);
  double lowest(double limit);
  bool add_violated();
  bool follow_barrier(const MarginSolution& frobenius, const std::function<bool(const SolveProgress&)>& stop);
  Outcome descend(NuclearRows& rows, const MarginSolution& frobenius, double tolerance,
                  const std::function<bool(const SolveProgress&)>& stop);
  void spread_dual();
  bool needs_blas() const;
  void take_frobenius(const MarginSolution& frobenius);
  void take_factors(const Eigen::MatrixXd& U, const Eigen::VectorXd& sigma, const Eigen::MatrixXd& V, double noise);
  void take_face();
  void take_interior_point();
  static double balance(const NuclearRows& rows, const double* lambda, const double* slack);

  const MarginProblem* problem_ = nullptr;
  NuclearRows rows_, some_;
  IndexList near_, next_;  // near_: the rows that the interior point method takes
  NuclearBarrier barrier_;
  NuclearInteriorPoint interior_;
  NuclearFace face_;
  Eigen::MatrixXd start_, W_;
  Buffer<double> lambda_, slack_, value_, sorted_;
  RowMatrix K_, Q_;
  Eigen::VectorXd dual_;
  Index iterations_ = 0;
  std::string_view method_;
};

}  // namespace attsvm::internal
