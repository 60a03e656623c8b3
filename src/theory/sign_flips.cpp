#include "theory/sign_flips.h"

namespace attsvm::internal {

RowMatrix sign_flipped(const Eigen::MatrixXd& key_axes, const Eigen::MatrixXd& M, const Eigen::MatrixXd& query_axes,
                       const Random& random) {
  const Index rows = M.rows(), cols = M.cols();
  Eigen::VectorXd left(rows), right(cols);
  for (Index j = 0; j < rows; ++j) left(j) = random.below(2, static_cast<std::uint64_t>(j)) == 0 ? -1 : 1;
  for (Index j = 0; j < cols; ++j) right(j) = random.below(2, static_cast<std::uint64_t>(rows + j)) == 0 ? -1 : 1;
  return key_axes * left.asDiagonal() * M * right.asDiagonal() * query_axes.transpose();
}

}  // namespace attsvm::internal
