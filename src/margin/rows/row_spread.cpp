#include "margin/rows/row_spread.h"

#include <algorithm>

namespace attsvm::internal {
namespace {

constexpr Index kFewestSamples = 16, kMostSamples = 256;  // rows, each of another query; by hand

/// Of unit vectors, one per row. Pairs of different samples alone, so that their number does not matter.
double effective_dimension(const RowMatrix& vectors) {
  RowMatrix products = vectors * vectors.transpose();
  products.diagonal().setZero();
  const auto pairs = static_cast<double>(vectors.rows() * (vectors.rows() - 1));
  return std::min(static_cast<double>(vectors.cols()), pairs / products.squaredNorm());
}

}  // namespace

double row_spread(const MarginProblem& problem) {
  const auto queries = static_cast<Index>(problem.groups().size());
  const Index samples = std::min(kMostSamples, queries), d = problem.d(), dz = problem.dz();
  if (samples < kFewestSamples) return 1;
  RowMatrix deltas(samples, d), zetas(samples, dz);
  for (Index j = 0; j < samples; ++j) {
    const MarginGroup& group = problem.groups()[static_cast<std::size_t>(j * queries / samples)];
    problem.delta(group, group.first_row + j % group.rows, deltas.row(j).data());
    zetas.row(j) = ConstVector(group.z, dz).transpose();
  }
  deltas.rowwise().normalize();
  zetas.rowwise().normalize();
  return effective_dimension(deltas) * effective_dimension(zetas) / static_cast<double>(d * dz);
}

}  // namespace attsvm::internal
