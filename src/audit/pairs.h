#pragma once

#include "audit/head_view.h"

namespace attsvm::internal {

/// Fills in the pairs and the weights by kind from the multipliers of a solution.
void describe_support(const HeadSet& heads, const HeadProblem& problem, const MarginProblem& rows,
                      const Eigen::VectorXd& dual, ViewAudit& audit);

/// The choices of smallest gap.
std::vector<UncertainQuery> least_certain(const HeadView& view);

}  // namespace attsvm::internal
