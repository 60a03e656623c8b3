#pragma once

#include <vector>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// Some rows of a problem with a soft margin, scaled to unit length, and W so that the largest b is about 1:
///
///   max bᵀx − ½‖Σ x_k a_k‖²,  x_k ≥ 0 unless row k is an equation,  Σ e_k x_k ≤ limit over the soft rows of a query
///
/// whose conditions of optimality have a slack y per query: a_k·W + e_k y = b_k + s_k, W = Σ x_k a_k, s_k ≥ 0. Rows
/// ≥ 1 are soft; equations and rows ≥ 0 are not, and have e_k = 0. Rows that are zero for every W are soft or left out.
class SoftRows {
 public:
  struct Group {
    Index first, count;   ///< rows here
    double limit;         ///< of Σ e_k x_k; infinite where no row is soft
    double penalty;       ///< C of its query; infinite where no row is soft
    double size;          ///< largest ‖δ‖‖ζ‖: ξ = size · y / scale()
    Index query, source;  ///< of the task; group of the problem
  };

  /// `rows` ascending; `penalty` has one entry per query. The problem has passed require_sizes().
  SoftRows(const MarginProblem& problem, const std::vector<double>& penalty, const std::vector<Index>& rows);

  Index count() const { return b_.size(); }
  double scale() const { return scale_; }  ///< Σ x_k a_k is this times W, a power of two
  Index unknowns() const { return delta_.cols() * zeta_.cols(); }
  const std::vector<Group>& groups() const { return groups_; }
  Index row(Index k) const { return row_[static_cast<std::size_t>(k)]; }  ///< its number in the problem
  bool equal(Index k) const { return equal_[static_cast<std::size_t>(k)]; }
  const Eigen::VectorXd& b() const { return b_; }
  const Eigen::VectorXd& e() const { return e_; }

  Eigen::MatrixXd gram() const;    ///< a_k·a_l, (count,count)
  Eigen::MatrixXd matrix() const;  ///< rows a_k, (count,unknowns)
  /// a_k·Σ x_l a_l of every row, in long double.
  Eigen::VectorXd products(const Eigen::VectorXd& x) const;
  /// Multipliers of all `rows` rows of the problem: λ_k = x_k/‖a_k‖ in the problem's scale, 0 for those that are not
  /// here.
  Eigen::VectorXd multipliers(const Eigen::VectorXd& x, Index rows) const;

 private:
  std::vector<Group> groups_;
  std::vector<Index> row_;
  std::vector<bool> equal_;
  double scale_ = 1;
  Eigen::VectorXd b_, e_, size_;
  RowMatrix delta_, zeta_;  // (count,d), (groups,dz), rows of unit length
};

/// InputError if double cannot hold the size of a row, or the multipliers of all.
void require_sizes(const MarginProblem& problem);

/// Reduces the multipliers of queries whose sum exceeds their penalty, so that it does not, without rounding.
void keep_within(const MarginProblem& problem, const std::vector<double>& penalty, Eigen::VectorXd& dual);

/// Whether the row may be missed at a price: it asks for more than 0 and is no equation.
inline bool is_soft(const MarginProblem& problem, Index row) { return !problem.equal(row) && problem.rhs(row) > 0; }

}  // namespace attsvm::internal
