#pragma once

#include <string>

namespace attsvm::internal {

/// Bytes that this process can still get: the least of what the machine has available, what the control groups of the
/// process allow, and what its own limit allows (ulimit -v). Infinity where the system says nothing. `root` is where
/// the system's files are; tests put their own there.
double free_memory(const std::string& root = "");

/// InputError, with both numbers, if `bytes` are more than free_memory(). For large work, before it begins: the system
/// gives memory out long before it has it, and then ends the process without a word. `what` needs the bytes: "W".
void require_memory(double bytes, const std::string& what);

}  // namespace attsvm::internal
