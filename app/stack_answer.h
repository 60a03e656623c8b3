#pragma once

#include "session.h"

namespace attsvm::internal {

/// Adds the options that say how the heads of a stack are judged.
void add_askers(CLI::App* verb, HierarchySettings& settings);

/// The heads of a stack as a table.
void print_hierarchy(const std::vector<HeadMargin>& heads, const HierarchySettings& settings);

/// `attsvm check` of the stack in a file.
ExitCode check_stack(Session& session, const AttentionTask& task, const std::string& path,
                     const HierarchySettings& settings, Threads& threads);

}  // namespace attsvm::internal
