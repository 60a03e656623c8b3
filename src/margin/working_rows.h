#pragma once

#include <vector>

#include "margin/scaled_problem.h"

namespace attsvm {

/// A row that the next working set shall hold.
struct PickedRow {
  Index row;     ///< of the problem
  Index from;    ///< its place among the group's present working rows; −1: it is new
  double value;  ///< at the present W
};

/// The rows a working-set solver works on, block by block: one block a group, which may be empty. Rows are kept packed
/// in single precision for conjugate gradients; what must be exact is computed in double straight from the tokens.
class WorkingRows {
 public:
  explicit WorkingRows(const ScaledProblem& problem);

  Index size() const { return begin_[problem_->groups()]; }
  Index begin(Index i) const { return begin_[i]; }
  Index end(Index i) const { return begin_[i + 1]; }
  Index count(Index i) const { return end(i) - begin(i); }
  Index row(Index k) const { return row_[k]; }  ///< its number in the problem
  bool equal(Index k) const { return low_[k] < 0; }
  double rhs(Index k) const { return rhs_[k]; }
  const double* low(Index i) const { return low_.data() + begin(i); }  ///< least multipliers: 0, or −∞
  const float* deltas(Index i) const { return deltas_.data() + begin(i) * problem_->d(); }
  const double* gram(Index i) const { return gram_.data() + gram_begin_[i]; }  ///< K_i = ‖z_i‖² δδᵀ, count × count
  Index gram_begin(Index i) const { return gram_begin_[i]; }
  Index gram_size() const { return gram_begin_[problem_->groups()]; }

  /// Takes the picked rows of every group, those already here (ascending in `from`) first. Multipliers stay with their
  /// rows, new rows start at 0.
  void rebuild(const std::vector<std::vector<PickedRow>>& picked);

  /// The values of the picked rows, which are just the rows already here.
  void take_values(const std::vector<std::vector<PickedRow>>& picked);

  /// W = Σ c_k δ_k z_kᵀ for one coefficient a working row.
  void weigh(const double* coefficients, double* W);
  /// value_k at W for every working row.
  void evaluate(const double* W);
  /// Σ λ_k b_k
  double demand() const;

  Buffer<double> lambda, value;  ///< of every working row

 private:
  void lay_out(const std::vector<std::vector<PickedRow>>& picked);
  void take(Index i, const std::vector<PickedRow>& picked, Index old_begin, Index old_gram, Index old_count);

  const ScaledProblem* problem_;
  Buffer<Index> begin_, gram_begin_, old_begin_, old_gram_begin_, row_;
  Buffer<Index> token_;  // keep, then the dropped tokens: those of group i start at begin(i) + i
  Buffer<double> rhs_, low_, old_lambda_;
  Storage<float> deltas_, old_deltas_;
  Storage<double> gram_, old_gram_;
  Storage<double> mixed_, projected_;  // d numbers a group
};

}  // namespace attsvm
