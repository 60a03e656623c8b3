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

double row_spread(const MarginProblem& problem, const RowSums& sums) {
  const Index queries = sums.groups(), first = sums.first_group(),
              last = first + static_cast<Index>(problem.groups().size());
  const Index samples = std::min(kMostSamples, queries), d = problem.d(), dz = problem.dz();
  if (samples < kFewestSamples) return 1;
  RowMatrix deltas(samples, d), zetas(samples, dz);
  Packer here;
  for (Index j = 0; j < samples; ++j) {
    const Index chosen = j * queries / samples;
    if (chosen < first || chosen >= last) continue;
    const MarginGroup& group = problem.groups()[static_cast<std::size_t>(chosen - first)];
    problem.delta(group, group.first_row + j % group.rows, deltas.row(j).data());
    zetas.row(j) = ConstVector(group.z, dz).transpose();
    if (sums.shared()) here.put(j).put(Eigen::RowVectorXd(deltas.row(j))).put(Eigen::RowVectorXd(zetas.row(j)));
  }
  const std::string each = sums.chain(here.take());
  for (Unpacker in(each); !in.done();) {
    const Index j = in.get<Index>();
    deltas.row(j) = in.matrix<Eigen::RowVectorXd>();
    zetas.row(j) = in.matrix<Eigen::RowVectorXd>();
  }
  deltas.rowwise().normalize();
  zetas.rowwise().normalize();
  return effective_dimension(deltas) * effective_dimension(zetas) / static_cast<double>(d * dz);
}

}  // namespace attsvm::internal
