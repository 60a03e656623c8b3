#include <Eigen/QR>
#include <algorithm>

#include "attsvm/task.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

namespace {

/// The rank of vectors, one per column, each scaled so that squares of large entries do not overflow.
Index rank_of_columns(Eigen::MatrixXd columns) {
  for (auto column : columns.colwise()) {
    const double largest = column.cwiseAbs().maxCoeff();
    if (largest > 0) column /= largest;
  }
  return Eigen::ColPivHouseholderQR<Eigen::MatrixXd>(columns).rank();
}

/// Next-token tasks: with linearly independent embeddings, the logits of all tokens after all tokens are free.
SeparabilityCondition for_embeddings(const AttentionTask& task) {
  SeparabilityCondition result;
  const Index K = task.vocabulary_size(), d = task.key_size();
  result.needed_key_size = K;
  if (d < K) {
    result.reason = fmt::format("d = {} < {} = tokens of the vocabulary", d, K);
    return result;
  }
  result.query_rank = rank_of_columns(task.embeddings().transpose());
  result.holds = result.query_rank == K;
  result.reason = result.holds ? fmt::format("the {} embeddings are linearly independent", K)
                               : fmt::format("the {} embeddings span only {} dimensions", K, result.query_rank);
  return result;
}

}  // namespace

SeparabilityCondition separability_condition(const AttentionTask& task) {
  SeparabilityCondition result;
  const Index q = task.queries(), d = task.key_size(), dz = task.query_size();
  if (task.next_token()) return for_embeddings(task);
  Index most = 0, total = 0;
  for (Index i = 0; i < q; ++i) {
    most = std::max(most, task.visible(i) - 1);
    total += task.visible(i) - 1;
  }
  if (task.kind() == AttentionKind::prompt) {
    result.needed_key_size = total;
    result.holds = d >= total;
    result.reason = fmt::format("d = {} {} {} = tokens to beat over all queries", d, result.holds ? ">=" : "<", total);
    return result;
  }
  result.needed_key_size = most;
  if (d < most) {
    result.reason = fmt::format("d = {} < {} = most tokens that one query has to beat", d, most);
  } else if (q > dz) {
    result.reason = fmt::format("{} queries of size {} cannot be linearly independent", q, dz);
  } else {
    Eigen::MatrixXd Z(dz, q);
    for (Index i = 0; i < q; ++i) Z.col(i) = task.query(i);
    result.query_rank = rank_of_columns(std::move(Z));
    result.holds = result.query_rank == q;
    result.reason = result.holds ? fmt::format("d = {} >= {} and the {} queries are linearly independent", d, most, q)
                                 : fmt::format("the {} queries span only {} dimensions", q, result.query_rank);
  }
  return result;
}

}  // namespace attsvm
