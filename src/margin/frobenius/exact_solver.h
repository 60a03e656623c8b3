#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "base/qr_basis.h"
#include "margin/outcome.h"
#include "margin/rows/unit_rows.h"

namespace attsvm::internal {

/// Solves min ‖W‖_F over the rows of a problem exactly on its active set, or proves that they conflict.
///
/// The fast path guesses the active set by a few epochs of Gauss–Seidel on the dual and corrects it by block pivoting,
/// with one factorisation per try; small problems on which that cycles go on one row at a time. If rows depend on each
/// other, or pivoting does not converge, the robust path (the dual active-set method of Goldfarb and Idnani) ends after
/// finitely many steps with the optimum or a Farkas certificate. Keeps its memory from one solve to the next.
class ExactSolver {
 public:
  using Outcome = ActiveSetOutcome;

  /// `support`: rows to start from, ascending (may be empty). `stop` is called from time to time and ends the solve by
  /// returning true. `lift` is added to the right-hand sides of inequalities, per ‖δ‖ ‖ζ‖.
  Outcome solve(const MarginProblem& problem, const IndexList& support, const std::function<bool()>& stop,
                double lift = 0);

  /// λ is given up to a positive factor. Optimal: W meets the rows to rounding, and is a multiple of Σ λ_k δ_k ζ_kᵀ.
  /// Infeasible: Σ λ_k δ_k ζ_kᵀ vanishes to rounding while Σ λ_k b_k > 0. Stopped: W is the last point, and meets only
  /// part of the rows.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }
  bool was_robust() const { return robust_; }

 private:
  bool normalize(const MarginProblem& problem, double lift);
  bool guess_active_set(const std::function<bool()>& stop);
  bool guess_by_gram(const std::function<bool()>& stop);
  bool solve_face(const std::function<bool()>& stop);
  bool walk_to_face(const std::function<bool()>& stop);
  double longest_step(double length, Index& leaving) const;
  void keep_largest(Index count);
  Index judge(double tolerance);
  double value_by_gram();
  void factor_face();
  bool refine_face();
  bool solve_face_iteratively(double tolerance);
  Outcome active_set(const std::function<bool()>& stop);
  void reduce();
  void load_row(Index k);
  void refresh(Index from);
  void add_projected(Index k);
  void drop_member(Index j);
  void start_from_guess();
  void expand();
  double weight_norm() const;

  // The problem in unit rows: δ/‖δ‖, ζ/‖ζ‖, b/(‖δ‖‖ζ‖) times the power of two that brings the largest |b| into [1, 2).
  const MarginProblem* problem_ = nullptr;
  Index live_ = 0;    // rows that are not zero
  double scale_ = 1;  // rhs_ = b / size_ · scale_
  UnitRows rows_;
  Buffer<Index> row_, query_;  // of each live row: its number in the problem, its query
  Buffer<double> rhs_, low_, size_;
  Buffer<std::uint8_t> free_;  // equality rows: multiplier of either sign
  Index conflict_row_ = -1;    // a zero row that can never be met

  // The state: multipliers of live rows, W of the scaled problem (padded, column-major), the active set.
  Buffer<double> x_, W_, value_;
  IndexList set_, next_;
  Index iterations_ = 0;
  bool robust_ = false;

  // Fast path
  Buffer<double> set_x_, point_, step_, L_, residual_, direction_, preconditioned_, product_, step_W_;
  Buffer<Index> local_, factor_at_;
  UnitRows face_;

  // Robust path: rows in orthonormal coordinates of what they span, vectors of `entries` numbers.
  UnitRows reduced_;
  QrBasis left_, right_, basis_;
  Buffer<double> a_, y_, r_, C_;
  Buffer<std::uint8_t> member_, implied_;
};

}  // namespace attsvm::internal
