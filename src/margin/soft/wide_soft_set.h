#pragma once

#include <functional>
#include <vector>

#include "margin/rows/wide_rows.h"

namespace attsvm::internal {

/// An active-set method on the dual of a soft margin in wide numbers, a last resort for small problems:
///
///   max bᵀx − ½‖Σ x_k a_k‖²,  x_k ≥ 0 unless row k is an equation,  Σ x_k + left = C over the soft rows of a query
///
/// Some variables, the set, are free, all others stay at 0. The set has a pivot in every query with soft rows, which
/// takes up what the query's other variables give, and is such that the other members determine W. A variable that
/// would gain joins; those that reach 0 leave. Its answer is correct to the rounding to double.
class WideSoftSet {
 public:
  /// Whether the problem is small enough to be solved within seconds.
  static bool suits(const MarginProblem& problem);

  /// `guess`: multipliers to start from, one per row, within the penalties (one per query). `lift` is added to the
  /// right-hand sides of soft rows, per ‖δ‖ ‖ζ‖. False: stopped, or too many steps.
  bool solve(const MarginProblem& problem, const std::vector<double>& penalty, const Eigen::VectorXd& guess,
             const std::function<bool()>& stop, double lift = 0);
  void write(RowMatrix& W, Eigen::VectorXd& dual) const;
  Index iterations() const { return iterations_; }

 private:
  /// A multiplier, or what is left of a penalty.
  struct Variable {
    Index row = -1;     // of rows_; −1: its row is zero, or it has none
    Index source = -1;  // row of the problem; −1: what is left
    Index query = -1;   // place among the groups of the problem; −1: its row is not soft
    Wide e, b;          // share of its query's sum, and right-hand side, for a scaled row
    bool equation = false;
  };
  /// A variable's row less that of its pivot, split by the set: its coefficients r, and the squared length of the rest
  /// (zero for a dependent row).
  struct Split {
    WideVector y, r;
    Wide rest;
  };

  void list_variables(const MarginProblem& problem, double lift);
  void start_from(const MarginProblem& problem, const std::vector<double>& penalty, const Eigen::VectorXd& guess);
  bool settle(const std::function<bool()>& stop);
  Index best_gain() const;
  bool bring_in(Index v);
  Index advance(const WideVector& set_step, Index extra, const Wide& extra_step, bool bounded);
  void leave(Index v);
  bool refactor();
  void push(Index v, Split split);
  Split split(Index v) const;
  void refresh();
  Wide ratio(Index v) const;
  Wide inner(Index u, Index v) const;
  Wide reduced_inner(Index u, Index v) const;
  Wide missing(Index v) const;

  WideRows rows_;
  Index rows_of_problem_ = 0;
  std::vector<Variable> variables_;
  WideVector x_;
  std::vector<char> member_, tried_;  // tried_: cannot gain until W changes
  std::vector<Index> pivot_;          // of each group; −1 where no row is soft
  std::vector<Index> set_;            // members that are no pivots
  std::vector<WideVector> factor_;    // Cholesky factor of the Gram matrix of their rows less those of their pivots
  WideVector W_, value_;
  Wide size_, terms_;  // ‖W‖, Σ |x_k| ‖a_k‖
  Index iterations_ = 0;
};

}  // namespace attsvm::internal
