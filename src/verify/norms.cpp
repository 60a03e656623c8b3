#include "verify/norms.h"

#include <cmath>

#include "base/decompositions.h"
#include "verify/rows.h"

namespace attsvm::internal::proof {
namespace {

/// The midpoints as doubles, divided by the largest: balls have exponents beyond the range of doubles.
RowMatrix scaled_middle(const BallMatrix& A) {
  RowMatrix result = RowMatrix::Zero(A.rows(), A.columns());
  const arf_struct* top = arb_midref(A.data());
  for (Index k = 0; k < A.size(); ++k) {
    if (arf_cmpabs(arb_midref(A.data() + k), top) > 0) top = arb_midref(A.data() + k);
  }
  if (arf_is_special(top)) return result;
  constexpr slong kBits = 53;
  arf_t entry, size;
  arf_init(entry);
  arf_init(size);
  arf_abs(size, top);
  for (Index k = 0; k < A.size(); ++k) {
    arf_div(entry, arb_midref(A.data() + k), size, kBits, ARF_RND_NEAR);
    result.data()[k] = arf_get_d(entry, ARF_RND_NEAR);
  }
  arf_clear(entry);
  arf_clear(size);
  return result;
}

/// The largest absolute row sum.
Ball row_sum(const BallMatrix& A) {
  Ball largest;
  for (Index i = 0; i < A.rows(); ++i) {
    Ball sum;
    for (Index j = 0; j < A.columns(); ++j) sum = sum + abs(Ball::of(A.at(i, j)));
    largest = max(largest, sum);
  }
  return largest;
}

/// MᵀM
void gram(BallMatrix& result, const BallMatrix& M) {
  BallMatrix transpose(M.columns(), M.rows());
  arb_mat_transpose(transpose.get(), M.get());
  arb_mat_mul(result.get(), transpose.get(), M.get(), WorkingBits::now());
}

/// ‖MᵀM − I‖ by absolute row sums.
Ball defect(const BallMatrix& M) {
  BallMatrix square(M.columns(), M.columns());
  gram(square, M);
  for (Index j = 0; j < M.columns(); ++j) arb_sub_ui(square.at(j, j), square.at(j, j), 1, WorkingBits::now());
  return row_sum(square);
}

Ball column_norm(const BallMatrix& M, Index j) {
  return sqrt(dot(M.at(0, j), M.columns(), M.at(0, j), M.columns(), M.rows()));
}

}  // namespace

Ball frobenius_norm(const BallMatrix& A) { return sqrt(dot(A.data(), 1, A.data(), 1, A.size())); }

Ball power_norm(const BallMatrix& A, const Ball& p) {
  Ball sum;
  for (Index k = 0; k < A.size(); ++k) sum = sum + power(Ball::of(A.data() + k), p);
  return power(sum, Ball(1) / p);
}

Ball dual_power(double power) { return Ball(power) / (Ball(power) - Ball(1)); }

SingularVectors singular_vectors(const RowMatrix& A) {
  SingularVectors result{.transposed = A.cols() > A.rows()};
  const Eigen::MatrixXd tall = result.transposed ? Eigen::MatrixXd(A.transpose()) : Eigen::MatrixXd(A);
  ThinSvd svd = thin_svd(tall);
  result.U = std::move(svd.U);
  result.V = std::move(svd.V);
  if (!result.U.allFinite() || !result.V.allFinite()) throw Undecided{"singular vectors"};
  return result;
}

Ball top_between(const Ball& column, const Ball& row_sum) { return Ball::between(column, sqrt(row_sum)); }

Ball SpectralProof::operator_norm() const {
  return Ball::between(top / sqrt(Ball(1) + defect_v), top / sqrt(Ball(1) - defect_v));
}

Ball SpectralProof::nuclear_norm() const {
  Ball sum;
  for (const Ball& column : columns) sum = sum + column;
  const Ball low = inner / sqrt((Ball(1) + defect_u) * (Ball(1) + defect_v));
  return Ball::between(low, sum / sqrt(Ball(1) - defect_v));
}

Ball SpectralProof::singular_value_bound(Index r) const {
  Ball square;
  for (std::size_t j = static_cast<std::size_t>(r) - 1; j < columns.size(); ++j)
    square = square + columns[j] * columns[j];
  return sqrt(square) / sqrt(Ball(1) - defect_v);
}

SpectralProof prove_spectrum(const BallMatrix& A) {
  const SingularVectors vectors = singular_vectors(scaled_middle(A));
  const BallMatrix U{RowMatrix(vectors.U)}, V{RowMatrix(vectors.V)};
  SpectralProof proof{.defect_u = defect(U), .defect_v = defect(V)};
  if (!surely_at_most(proof.defect_v, Ball(0.5))) throw Undecided{"singular vectors"};
  BallMatrix Y(U.rows(), V.columns()), square(V.columns(), V.columns());
  if (vectors.transposed) {
    BallMatrix transpose(A.columns(), A.rows());
    arb_mat_transpose(transpose.get(), A.get());
    arb_mat_mul(Y.get(), transpose.get(), V.get(), WorkingBits::now());
  } else {
    arb_mat_mul(Y.get(), A.get(), V.get(), WorkingBits::now());
  }
  for (Index j = 0; j < Y.columns(); ++j) {
    proof.columns.push_back(column_norm(Y, j));
    proof.inner = proof.inner + dot(U.at(0, j), U.columns(), Y.at(0, j), Y.columns(), Y.rows());
  }
  gram(square, Y);
  proof.top = top_between(proof.columns.front(), row_sum(square));
  return proof;
}

}  // namespace attsvm::internal::proof
