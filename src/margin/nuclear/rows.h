#pragma once

#include "attsvm/margin.h"
#include "base/buffer.h"
#include "base/kernels/dense.h"
#include "base/qr_basis.h"
#include "margin/rows/equation_basis.h"

namespace attsvm::internal {

/// The rows of a problem as the nuclear solver reads them: the equations of a query are eliminated from its other rows;
/// rows have unit length; δ and ζ are in orthonormal coordinates of their spans if those have fewer dimensions than d
/// and dz, which does not change the nuclear norm; and rows are scaled so that the expected ‖W‖ is one. Coordinates are
/// padded with zeros to multiples of 4. Keeps its memory between calls.
class NuclearRows {
 public:
  /// `size`: about the Frobenius norm of the smallest W that meets the rows. `only`: the rows to load (ascending), none
  /// of them an equation; null: all.
  void load(const MarginProblem& problem, double size, const IndexList* only = nullptr);
  /// Takes the rows `list` (ascending) of `all`, in its coordinates. Solvers can read the result; the functions that
  /// convert to the units of the problem do not work on it.
  void take(const NuclearRows& all, const IndexList& list);

  Index count() const { return count_; }        ///< rows that are not zero
  Index queries() const { return queries_; }    ///< queries they belong to
  Index left() const { return left_size_; }     ///< padded size of δ
  Index right() const { return right_size_; }   ///< padded size of ζ
  Index row(Index k) const { return row_[k]; }  ///< its number in the problem
  Index query(Index k) const { return query_[k]; }
  const Index* query() const { return query_.data(); }
  bool equal(Index k) const { return equal_[k] != 0; }
  double rhs(Index k) const { return rhs_[k]; }
  const double* delta(Index k) const { return delta_.data() + k * left_size_; }
  const double* zeta(Index i) const { return zeta_.data() + i * right_size_; }  ///< right() numbers per query
  const double* zeta_across() const { return zeta_across_.data(); }             ///< queries() × right()

  /// out_k = δ_kᵀ Y ζ_k
  void values(const Eigen::MatrixXd& Y, double* out);
  /// A = Σ x_k δ_k ζ_kᵀ
  void weigh(const double* x, Eigen::MatrixXd& A);

  /// Conversions from and to the units of the problem.
  void weights_in(const RowMatrix& W, Eigen::MatrixXd& Y) const;
  void left_out(const Eigen::MatrixXd& U, RowMatrix& K) const;   ///< coordinates of columns on the left
  void right_out(const Eigen::MatrixXd& V, RowMatrix& Q) const;  ///< and on the right
  double weight_scale() const { return scale_; }                 ///< W in the problem / W here
  void duals_in(const Eigen::VectorXd& dual, double* lambda);    ///< multipliers here from those of the problem
  void duals_out(const double* lambda, Eigen::VectorXd& dual) const;

 private:
  const EquationBasis* take_equations(const MarginGroup& group);
  void lay_out();

  const MarginProblem* problem_ = nullptr;
  Index count_ = 0, queries_ = 0, left_size_ = 0, right_size_ = 0;
  double scale_ = 1;
  bool left_reduced_ = false, right_reduced_ = false;
  QrBasis left_, right_;
  std::vector<EquationBasis> equations_;  // one per query that has equations
  std::size_t with_equations_ = 0;        // how many of them belong to this problem
  Eigen::VectorXd dual_;
  Buffer<Index> row_, query_;
  Buffer<std::uint8_t> equal_;
  Buffer<double> rhs_, size_, delta_, zeta_, zeta_across_, full_, projected_, collected_;
};

}  // namespace attsvm::internal
