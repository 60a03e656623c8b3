#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "attsvm/verify.h"

namespace attsvm::internal {

/// The state of verify(), as the callback gets it.
struct VerifyProgress {
  double share = 0;       ///< of the work with the present arithmetic, roughly; a finer one begins again at 0
  std::string_view part;  ///< what is looked at, in words
};
using TellVerify = std::function<void(const VerifyProgress&)>;

/// attsvm::verify(), which calls `tell` often.
Verification verify(const AttentionTask& task, const StoredSolution& solution, const VerifySettings& settings,
                    const TellVerify& tell);

/// What verify() remarks on an answer of solve(); empty: nothing.
std::string remark_on(const AttentionTask& task, const StoredSolution& solution);

}  // namespace attsvm::internal
