#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "attsvm/selection.h"
#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm {

enum class ProblemKind : std::uint8_t {
  attention,  ///< rows x_keep − x_drop against z: Att-SVM, p-SVM, Gen-SVM, relaxed
  value,      ///< rows y_i v_keep, W is (dv,1): v-SVM
  finite,     ///< equalities among kept tokens with given log-ratios: the finite part
};

std::string_view name_of(ProblemKind kind);

/// The rows of one query. Row k (0 ≤ k < rows) says sign·x_keep − x_{drop(k)} against z; X is a view of the tokens.
struct MarginGroup {
  Index query;
  const double* X;  ///< row-major tokens, d numbers each
  const double* z;  ///< dz numbers
  Index keep;
  double sign;  ///< 1, or the label in a value problem (which has no dropped token)
  Index first_row, rows;
};

/// min ‖W‖ subject to δ_kᵀ W ζ_k ≥ b_k (or = b_k). Rows stay factored: they are differences of two tokens that are
/// never copied out. Queries without rows (one visible token) have no group. The task must outlive the problem.
class MarginProblem {
 public:
  /// Every visible token but the smallest kept one gives a row: ≥ 1 over a dropped token, = 0 against a kept one.
  /// For queries listed in `relax` ≥ 1 becomes ≥ 0.
  static MarginProblem attention(const AttentionTask& task, Selection selection, std::span<const Index> relax = {});
  /// y_i v_{iα}ᵀ w ≥ 1 for the selected token of every query. InputError if a query keeps several.
  static MarginProblem value(const AttentionTask& task, Selection selection);
  /// Kept tokens' logits differ as given: (x_keep − x_t)ᵀ W z = log_attention[i][keep] − log_attention[i][t].
  static MarginProblem finite_part(const AttentionTask& task, Selection selection, const RowMatrix& log_attention);

  ProblemKind kind() const { return kind_; }
  const AttentionTask& task() const { return *task_; }
  const Selection& selection() const { return selection_; }
  const std::vector<bool>& relaxed() const { return relaxed_; }

  Index d() const { return d_; }
  Index dz() const { return dz_; }
  Index rows() const { return static_cast<Index>(rhs_.size()); }
  std::span<const MarginGroup> groups() const { return groups_; }

  Index drop(Index row) const { return drop_[static_cast<std::size_t>(row)]; }  ///< −1 in a value problem
  /// drop() of a group's rows, in order.
  std::span<const Index> drops(const MarginGroup& group) const {
    return std::span(drop_).subspan(static_cast<std::size_t>(group.first_row), static_cast<std::size_t>(group.rows));
  }
  bool equal(Index row) const { return equal_[static_cast<std::size_t>(row)] != 0; }
  double rhs(Index row) const { return rhs_[static_cast<std::size_t>(row)]; }
  bool all_positive() const {
    return all_positive_;
  }  ///< every row is ≥ a positive number: scaling restores feasibility

  /// δ_row, d numbers.
  void delta(const MarginGroup& group, Index row, double* out) const;
  /// out_k = δ_kᵀ W ζ_k
  Eigen::VectorXd values(const RowMatrix& W) const;
  /// A(λ) = Σ λ_k δ_k ζ_kᵀ
  RowMatrix weigh(const Eigen::VectorXd& lambda) const;

 private:
  MarginProblem(const AttentionTask& task, Selection selection, ProblemKind kind);
  void add_row(Index drop, bool equal, double rhs);
  void begin_group(Index query, double sign);
  void end_group();

  const AttentionTask* task_;
  Selection selection_;
  ProblemKind kind_;
  std::vector<bool> relaxed_;
  Index d_, dz_;
  std::vector<MarginGroup> groups_;
  std::vector<Index> drop_;
  std::vector<std::uint8_t> equal_;
  std::vector<double> rhs_;
  bool all_positive_ = true;
};

}  // namespace attsvm
