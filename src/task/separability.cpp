#include <Eigen/QR>
#include <algorithm>

#include "attsvm/task.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

SeparabilityCondition separability_condition(const AttentionTask& task) {
  SeparabilityCondition result;
  const Index q = task.queries(), d = task.key_size(), dz = task.query_size();
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
    for (Index i = 0; i < q; ++i) {  // scaled so that squares of large entries do not overflow
      const double largest = task.query(i).cwiseAbs().maxCoeff();
      Z.col(i) = task.query(i) / (largest > 0 ? largest : 1);
    }
    result.query_rank = Eigen::ColPivHouseholderQR<Eigen::MatrixXd>(Z).rank();
    result.holds = result.query_rank == q;
    result.reason = result.holds ? fmt::format("d = {} >= {} and the {} queries are linearly independent", d, most, q)
                                 : fmt::format("the {} queries span only {} dimensions", q, result.query_rank);
  }
  return result;
}

}  // namespace attsvm
