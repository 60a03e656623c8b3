#pragma once

#include <optional>

#include "session.h"

namespace attsvm::internal {

/// What `attsvm check` says about a next-token task and, if given, a run.
Json next_token_json(const AttentionTask& task, const NextTokenCheck& check, const std::optional<StoredRun>& run);
void print_next_token(const AttentionTask& task, const NextTokenCheck& check, const std::optional<StoredRun>& run,
                      const std::string& file);

}  // namespace attsvm::internal
