#pragma once

#include "attsvm/margin_problem.h"
#include "base/buffer.h"
#include "margin/dense_kernels.h"
#include "margin/equation_basis.h"
#include "margin/qr_basis.h"

namespace attsvm {

/// The rows of a problem as the nuclear solver reads them: a query's equations taken out of its other rows, of unit
/// length, in orthonormal coordinates of what the δ and
/// the ζ span where those are fewer than d and dz (the nuclear norm does not see the difference), and scaled so that
/// the expected ‖W‖ is one. Coordinates are padded with zeros to multiples of 4. Memory is kept.
class NuclearRows {
 public:
  /// `size`: the Frobenius norm of the smallest W that meets the rows, or about that.
  void load(const MarginProblem& problem, double size);
  /// Some of the rows of `all` (ascending), in its coordinates. To be read by solvers: nothing leads out of it.
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
  const double* zeta(Index i) const { return zeta_.data() + i * right_size_; }  ///< the queries side by side
  const double* zeta_across() const { return zeta_across_.data(); }             ///< queries() × right()

  /// out_k = δ_kᵀ Y ζ_k
  void values(const Eigen::MatrixXd& Y, double* out);
  /// A = Σ x_k δ_k ζ_kᵀ
  void weigh(const double* x, Eigen::MatrixXd& A);

  /// From and to the units of the problem.
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
  std::vector<EquationBasis> equations_;  // of the queries that have some
  std::size_t with_equations_ = 0;        // how many of them are of this problem
  Eigen::VectorXd dual_;
  Buffer<Index> row_, query_;
  Buffer<std::uint8_t> equal_;
  Buffer<double> rhs_, size_, delta_, zeta_, zeta_across_, full_, projected_, collected_;
};

}  // namespace attsvm
