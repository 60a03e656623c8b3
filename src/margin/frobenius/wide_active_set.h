#pragma once

#include <functional>

#include "margin/outcome.h"
#include "margin/rows/wide_rows.h"

namespace attsvm::internal {

/// The dual active-set method of Goldfarb and Idnani in wide numbers: a last resort for rows that are so nearly
/// dependent or conflicting that double cannot tell. Slow, so only for small problems. Its answer is correct to the
/// rounding to double.
class WideActiveSet {
 public:
  using Outcome = ActiveSetOutcome;

  /// Minimises ‖W‖_F over the rows. `guess`: a multiplier per row; those that are not zero mark rows to start from.
  /// `lift` is added to the right-hand sides of inequalities, per ‖δ‖ ‖ζ‖.
  Outcome solve(const MarginProblem& problem, const Eigen::VectorXd& guess, const std::function<bool()>& stop,
                double lift = 0);
  /// λ is given up to a positive factor. Infeasible: W is zero, λ is a Farkas certificate.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;
  Index iterations() const { return iterations_; }

 private:
  /// A row split by the set: its combination r of the set's rows, and the squared length of the rest (zero for a
  /// dependent row).
  struct Split {
    WideVector y, r;
    Wide rest;
  };

  enum class Joining : std::uint8_t { joined, implied, conflict };

  void start_from(const Eigen::VectorXd& guess);
  Index most_violated() const;
  Joining bring_in(Index p);
  Wide noise(Index p, const Split& split) const;
  Split split(Index p) const;
  void push(Index p, Split split);
  void drop(Index j);
  void refresh();
  void keep_conflict(Index p, const Split& split, int sign);

  WideRows rows_;
  Index rows_of_problem_ = 0;
  WideVector rhs_;          // of scaled rows
  std::vector<char> free_;  // equalities
  // The set, the lower triangles of its Gram matrix and of the Cholesky factor L of that, multipliers, L⁻¹ b.
  std::vector<Index> set_;
  std::vector<char> member_, implied_;  // implied_: met to the rounding that its dependence on the set allows
  std::vector<WideVector> gram_, factor_;
  WideVector x_, y_;
  WideVector W_, value_, lambda_;  // lambda_: final multipliers of the problem's rows
  Wide norm_;
  Index iterations_ = 0;
};

}  // namespace attsvm::internal
