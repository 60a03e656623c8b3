#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "attsvm/theory.h"
#include "margin/shared_solve.h"

namespace attsvm::internal {

/// As Ranks::collect.
using CollectParts =
    std::function<void(const std::string& own, const std::function<void(int process, std::string_view bytes)>& use)>;

/// check_selection() of a task that processes share; all call it, each with its part. The first one gets the check of
/// the whole task, in which solutions have the multipliers and slacks of its own rows alone; the others get nothing of
/// use. Nothing, on all: see solve_shared().
std::optional<Check> check_shared(const AttentionTask& part, Selection selection, const CheckSettings& settings,
                                  Threads& threads, const SharedRows& shared, const CollectParts& collect);

}  // namespace attsvm::internal
