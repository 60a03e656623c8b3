#include "verify/norms.h"

#include <cmath>

#include "base/decompositions.h"
#include "base/limits.h"
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

Power power_of(const Norm& norm) { return {norm.power, norm.power}; }

Power dual_power_of(const Norm& norm) {
  const Ball P(norm.power);
  const double rounded = norm.dual().power;
  return {rounded, norm.power == 1 || norm.power == kInfinity ? Ball(rounded) : P / (P - Ball(1))};
}

Ball power_norm(const std::vector<Ball>& x, const Power& p) {
  Ball sum;
  for (const Ball& each : x) {
    if (p.rounded == kInfinity) {
      sum = max(sum, abs(each));
    } else {
      sum = sum + (p.rounded == 1 ? abs(each) : power(each, p.exact));
    }
  }
  return p.rounded == 1 || p.rounded == kInfinity ? sum : power(sum, Ball(1) / p.exact);
}

Ball power_norm(const BallMatrix& A, const Power& p) {
  if (p.rounded == 2) return frobenius_norm(A);
  std::vector<Ball> entries;
  for (Index k = 0; k < A.size(); ++k) entries.push_back(Ball::of(A.data() + k));
  return power_norm(entries, p);
}

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

Ball SpectralProof::schatten_norm(const Power& p) const {
  if (p.rounded == kInfinity) return operator_norm();
  const double largest = columns.empty() ? 0 : columns.front().upper();
  if (!(largest > 0)) return Ball::between(Ball(0), power_norm(columns, p) / sqrt(Ball(1) - defect_v));
  Ball product;
  std::vector<Ball> weights;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const double weight = std::pow(std::max(columns[j].middle(), 0.0) / largest, p.rounded - 1);
    weights.emplace_back(weight);
    product = product + Ball(weight) * inner[j];
  }
  const bool plain = p.rounded == 1;
  const Power dual{plain ? kInfinity : p.rounded / (p.rounded - 1), plain ? Ball(1) : p.exact / (p.exact - Ball(1))};
  const Ball low = product / (power_norm(weights, dual) * sqrt((Ball(1) + defect_u) * (Ball(1) + defect_v)));
  Ball high;
  if (p.rounded <= 2) {
    high = power_norm(columns, p);
  } else {
    std::vector<Ball> squares;
    for (const Ball& column : columns) squares.push_back(column * column);
    const Ball rest = sqrt(Ball(static_cast<double>(columns.size()))) * coupling;
    high = sqrt(power_norm(squares, {p.rounded / 2, p.exact / Ball(2)}) + rest);
  }
  return Ball::between(max(low, Ball(0)), high / sqrt(Ball(1) - defect_v));
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
    proof.inner.push_back(dot(U.at(0, j), U.columns(), Y.at(0, j), Y.columns(), Y.rows()));
  }
  gram(square, Y);
  Ball coupling;
  for (Index i = 0; i < square.rows(); ++i) {
    for (Index j = 0; j < i; ++j) coupling = coupling + Ball(2) * Ball::of(square.at(i, j)) * Ball::of(square.at(i, j));
  }
  proof.coupling = sqrt(coupling);
  proof.top = top_between(proof.columns.front(), row_sum(square));
  return proof;
}

}  // namespace attsvm::internal::proof
