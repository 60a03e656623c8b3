#pragma once

#include <vector>

#include "margin/rows/scaled_problem.h"

namespace attsvm::internal {

/// A row of the next working set.
struct PickedRow {
  Index row;     ///< number in the problem
  Index from;    ///< position among the present working rows of its group; −1: new
  double value;  ///< at the present W
};

/// The rows that a working-set solver works on, in one block per group, which may be empty. Stores rows in single
/// precision for conjugate gradients; what must be accurate is computed in double from the tokens.
class WorkingRows {
 public:
  explicit WorkingRows(const ScaledProblem& problem);

  Index size() const { return begin_[problem_->groups()]; }
  Index all_size() const { return all_size_; }  ///< on all processes
  Index begin(Index i) const { return begin_[i]; }
  Index end(Index i) const { return begin_[i + 1]; }
  Index count(Index i) const { return end(i) - begin(i); }
  Index row(Index k) const { return row_[k]; }  ///< its number in the problem
  Index member(Index k) const { return k; }     ///< as FaceSystem asks
  bool equal(Index k) const { return equal_[k] != 0; }
  double rhs(Index k) const { return rhs_[k]; }
  /// Whether the row belongs to the face: its multiplier may move.
  bool in_face(Index k) const { return equal(k) || lambda[k] > 0 || value[k] < rhs(k); }
  const float* deltas(Index i) const { return deltas_.data() + begin(i) * problem_->d(); }
  const double* gram(Index i) const { return gram_.data() + gram_begin_[i]; }  ///< K_i = ‖z_i‖² δδᵀ, count × count
  Index gram_begin(Index i) const { return gram_begin_[i]; }
  Index gram_size() const { return gram_begin_[problem_->groups()]; }

  /// Replaces the working rows by the picked rows; each group lists its present rows first, ascending in `from`.
  /// Present rows keep their multipliers, new rows start at 0.
  void rebuild(const std::vector<std::vector<PickedRow>>& picked);

  /// Takes the values of the picked rows, which must be the present working rows.
  void take_values(const std::vector<std::vector<PickedRow>>& picked);

  /// W = Σ c_k δ_k z_kᵀ, with one coefficient per working row.
  void weigh(const double* coefficients, double* W);
  /// Sets `value` of every working row to its value at W.
  void evaluate(const double* W);
  /// Σ λ_k b_k
  double demand() const;
  /// Σ move_k (b_k − value_k) over the queries first … last−1: the slope of the dual along a move of λ.
  double slope(const double* move, Index first, Index last) const;

  Buffer<double> lambda, value;  ///< one number per working row

 private:
  void lay_out(const std::vector<std::vector<PickedRow>>& picked);
  void take(Index i, const std::vector<PickedRow>& picked, Index old_begin, Index old_gram, Index old_count);

  const ScaledProblem* problem_;
  Index all_size_ = 0;
  Buffer<Index> begin_, gram_begin_, old_begin_, old_gram_begin_, row_;
  Buffer<Index> token_;  // keep, then the dropped tokens: those of group i start at begin(i) + i
  Buffer<double> rhs_, old_lambda_;
  Buffer<std::uint8_t> equal_;
  Storage<float> deltas_, old_deltas_;
  Storage<double> gram_, old_gram_;
  Storage<double> mixed_, projected_;  // d numbers per group
};

}  // namespace attsvm::internal
