#pragma once

#include <optional>

#include "session.h"

namespace attsvm::internal {

/// Adds the options that say how the heads of a stack are judged, and returns them.
std::vector<const CLI::Option*> add_askers(CLI::App* verb, HierarchySettings& settings);

/// Shows a line of progress while heads are judged, until Ctrl-C. The line must outlive the result.
std::function<bool(const HierarchyProgress&)> watch_judging(ProgressLine& line);

/// The heads of a stack as a table.
void print_hierarchy(const std::vector<HeadMargin>& heads, const HierarchySettings& settings);

/// Warns of what is not known about the heads, and returns the exit code that goes with it.
ExitCode end_hierarchy(const Session& session, const std::vector<HeadMargin>& heads);

/// How to judge the stack in a file.
struct StackCheckOptions {
  HierarchySettings judged;
  std::optional<std::uint64_t> seed;  ///< of the null; nullopt: that of the stack
};

/// `attsvm check` of the stack in a file.
ExitCode check_stack(Session& session, const AttentionTask& task, const std::string& path,
                     const StackCheckOptions& options, Threads& threads);

}  // namespace attsvm::internal
