#include "margin/frobenius/normal_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/blas.h"
#include "base/kernels/stream.h"
#include "margin/frobenius/blocked_cholesky.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kLeftOut = 0.3;          // trace of the queries left out, relative to that of I
constexpr double kSingleLimit = 1e4;      // single precision perturbs I by less than 1e-3 up to this trace of a query
constexpr Index kBatchNumbers = 1 << 22;  // numbers in the halves of a batch of queries
// Sizes of the pieces that threads take: queries, parts of the product
constexpr Index kQueriesPerChunk = 16, kProductChunks = 8;

Index triangle(Index n) { return n * (n + 1) / 2; }

}  // namespace

NormalMatrix::NormalMatrix(const MarginProblem& problem, const Eigen::VectorXd& square_sizes, Threads& threads)
    : problem_(problem),
      square_sizes_(square_sizes),
      threads_(threads),
      d_(problem.d()),
      dz_(problem.dz()),
      padded_((d_ + 7) / 8 * 8),
      unknowns_(d_ * dz_),
      left_size_(triangle(d_)),
      right_size_(triangle(dz_)),
      right_at_(static_cast<std::size_t>(dz_ * dz_)) {
  for (const MarginGroup& group : problem.groups()) longest_ = std::max(longest_, group.rows);
  trace_.grow(static_cast<Index>(problem.groups().size()));
  matrix_.grow(unknowns_ * unknowns_);
  for (Index i = 0, at = 0; i < dz_; ++i) {
    for (Index j = i; j < dz_; ++j, ++at) {
      right_at_[static_cast<std::size_t>(i * dz_ + j)] = right_at_[static_cast<std::size_t>(j * dz_ + i)] = at;
    }
  }
}

bool NormalMatrix::factor(const Eigen::VectorXd& weight) {
  const double left_out = select_heavy(weight) / static_cast<double>(unknowns_);
  const double diagonal = 1 + left_out + 4 * kEpsilon * largest_;
  if (largest_ < kSingleLimit) {
    multiply_halves(weight, single_);
    assemble(single_, diagonal);
    if (factorise()) return true;
  }
  multiply_halves(weight, double_);
  assemble(double_, diagonal);
  return factorise();
}

/// Writes the heavy queries to order_, ascending; returns the trace of the others.
double NormalMatrix::select_heavy(const Eigen::VectorXd& weight) {
  const auto groups = problem_.groups();
  const auto count = static_cast<Index>(groups.size());
  threads_.for_each((count + 255) / 256, [&](Index chunk) {
    for (Index i = chunk * 256; i < std::min(count, (chunk + 1) * 256); ++i) {
      const MarginGroup& group = groups[static_cast<std::size_t>(i)];
      trace_[i] = weight.segment(group.first_row, group.rows).dot(square_sizes_.segment(group.first_row, group.rows));
    }
  });
  order_.resize(static_cast<std::size_t>(count));
  std::iota(order_.begin(), order_.end(), Index{0});
  std::sort(order_.begin(), order_.end(),
            [&](Index a, Index b) { return trace_[a] != trace_[b] ? trace_[a] < trace_[b] : a < b; });
  largest_ = order_.empty() ? 0 : trace_[order_.back()];
  double left_out = 0;
  auto heavy = order_.begin();
  while (heavy != order_.end() && left_out + trace_[*heavy] <= kLeftOut * static_cast<double>(unknowns_)) {
    left_out += trace_[*heavy++];
  }
  order_.erase(order_.begin(), heavy);
  std::sort(order_.begin(), order_.end());
  return left_out;
}

/// product = Σ_i left_i right_iᵀ over the heavy queries, in batches that bound the memory.
template <class T>
void NormalMatrix::multiply_halves(const Eigen::VectorXd& weight, Halves<T>& halves) {
  const auto heavy = static_cast<Index>(order_.size());
  const Index most = std::clamp<Index>(kBatchNumbers / (left_size_ + right_size_), 4, 4096);
  const Index batch = std::clamp<Index>(heavy, 1, most);
  halves.left.grow(batch * left_size_);
  halves.right.grow(batch * right_size_);
  halves.product.grow(left_size_ * right_size_);
  if (heavy == 0) halves.product.fill(left_size_ * right_size_, T{0});
  const Index height = (left_size_ + kProductChunks - 1) / kProductChunks;
  for (Index first = 0; first < heavy; first += batch) {
    const Index count = std::min(batch, heavy - first);
    fill_halves(weight, first, count, halves);
    threads_.for_each(kProductChunks, [&](Index chunk) {
      const Index top = chunk * height, rows = std::min(height, left_size_ - top);
      if (rows <= 0) return;
      gemm(true, false, rows, right_size_, count, T{1}, halves.left.data() + top, left_size_, halves.right.data(),
           right_size_, first == 0 ? T{0} : T{1}, halves.product.data() + top * right_size_, right_size_);
    });
  }
}

template <class T>
void NormalMatrix::fill_halves(const Eigen::VectorXd& weight, Index first, Index count, Halves<T>& halves) const {
  threads_.for_each((count + kQueriesPerChunk - 1) / kQueriesPerChunk, [&](Index chunk) {
    std::vector<double> work(static_cast<std::size_t>((2 * longest_ + padded_) * padded_));
    for (Index q = chunk * kQueriesPerChunk; q < std::min(count, (chunk + 1) * kQueriesPerChunk); ++q) {
      const Index query = order_[static_cast<std::size_t>(first + q)];
      fill_half(weight, problem_.groups()[static_cast<std::size_t>(query)], work.data(),
                halves.left.data() + q * left_size_, halves.right.data() + q * right_size_);
    }
  });
}

/// Upper triangles of ‖ζ‖² Σ w_k δ_k δ_kᵀ and of the projection on ζ; split like this, neither overflows single
/// precision.
template <class T>
void NormalMatrix::fill_half(const Eigen::VectorXd& weight, const MarginGroup& group, double* work, T* left,
                             T* right) const {
  const ConstVector zeta(group.z, dz_);
  const double square = zeta.squaredNorm(), scale = square > 0 ? 1 / square : 0;
  double *delta = work, *weighted = delta + longest_ * padded_, *gram = weighted + longest_ * padded_;
  Index rows = 0;
  for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {  // the padding stays zero
    const double w = weight(k) * square;
    if (w == 0) continue;
    double *row = delta + rows * padded_, *other = weighted + rows++ * padded_;
    problem_.delta(group, k, row);
    for (Index j = 0; j < d_; ++j) other[j] = w * row[j];
  }
  gram_upper(weighted, delta, rows, padded_, gram);
  for (Index i = 0; i < d_; ++i) {
    for (Index j = i; j < d_; ++j) *left++ = static_cast<T>(gram[i * padded_ + j]);
  }
  for (Index i = 0; i < dz_; ++i) {
    const double z = zeta(i) * scale;
    for (Index j = i; j < dz_; ++j) *right++ = static_cast<T>(z * zeta(j));
  }
}

/// The lower triangle, d × d blocks of dz × dz numbers.
template <class T>
void NormalMatrix::assemble(const Halves<T>& halves, double diagonal) {
  threads_.for_each(d_, [&](Index i) {
    for (Index j = 0; j <= i; ++j) {
      const T* block = halves.product.data() + (j * d_ - j * (j - 1) / 2 + i - j) * right_size_;
      for (Index a = 0; a < dz_; ++a) {
        double* row = matrix_.data() + (i * dz_ + a) * unknowns_ + j * dz_;
        const Index* at = right_at_.data() + a * dz_;
        for (Index b = 0; b < dz_; ++b) row[b] = static_cast<double>(block[at[b]]);
      }
    }
    for (Index a = 0; a < dz_; ++a) matrix_[(i * dz_ + a) * (unknowns_ + 1)] += diagonal;
  });
}

bool NormalMatrix::factorise() { return blocked_cholesky(unknowns_, matrix_.data(), threads_); }

void NormalMatrix::solve(Eigen::VectorXd& x) const {
  solve_lower(false, unknowns_, matrix_.data(), unknowns_, x.data());
  solve_lower(true, unknowns_, matrix_.data(), unknowns_, x.data());
}

}  // namespace attsvm::internal
