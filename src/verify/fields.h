#pragma once

#include "attsvm/verify.h"

namespace attsvm::internal {

/// Calls visit(name, value) for every field of a verification, in the order of JSON and of Python.
template <class Visit>
void for_each_field(const Verification& v, Visit&& visit) {
  visit("valid", v.valid);
  visit("status", v.status);
  visit("reason", v.reason);
  visit("objective", v.objective);
  visit("dual_objective", v.dual_objective);
  visit("gap", v.gap);
  visit("violation", v.violation);
  visit("scaling", v.scaling);
  visit("homogeneous", v.homogeneous);
  visit("distance", v.distance);
  visit("residual", v.residual);
  visit("norm_bound", v.norm_bound);
  visit("rank", v.rank);
  visit("own_selection", v.own_selection);
  visit("relaxed", v.relaxed);
  visit("question", v.question);
  visit("arithmetic", v.arithmetic);
  visit("remark", v.remark);
}

}  // namespace attsvm::internal
