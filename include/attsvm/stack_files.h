#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attsvm/files.h"
#include "attsvm/stack.h"

namespace attsvm {

/// What the file of a stack holds.
struct StoredStack {
  std::string settings;                   ///< in words, as from words_of()
  std::vector<StackRecord> records;       ///< the recorded points; the last one is where the run ended
  std::optional<std::uint64_t> seed;      ///< of the run, if the settings say it
  std::optional<Index> task_fingerprint;  ///< fingerprint_of() the trained task, if the file has it
};

/// The arrays of the file of a stack (docs/formats.md).
NamedArrays stack_arrays(const AttentionTask& task, const StackSettings& settings, const StackRun& run);

/// Writes the file of a stack. InputError as for write_npz.
void save_stack(const std::string& path, const AttentionTask& task, const StackSettings& settings, const StackRun& run,
                bool replace);

/// The inverse of stack_arrays. Ignores arrays of other names. InputError names the array.
StoredStack stack_from(const NamedArrays& arrays);

/// Reads the file of a stack. InputError names the file and the array.
StoredStack load_stack(const std::string& path, Threads& threads);

/// Whether the file is one of a stack, and not of another run: whether it has the values V, and says whether it is
/// causal.
bool holds_stack(const std::string& path);

/// InputError unless the stack can be one on this task: the sizes fit, and so does the fingerprint if there is one.
void require_stack_of(const AttentionTask& task, const StoredStack& stack);

}  // namespace attsvm
