#pragma once

#include <string>

namespace attsvm::internal {

/// InputError if an output file may not be written: it exists and `replace` is false, or its folder does not exist.
/// To be called before long work; writing checks again.
void require_writable(const std::string& path, bool replace);

/// InputError if `output` is the same file as `input`: outputs never replace inputs, not even with --force.
void require_other_file(const std::string& output, const std::string& input);

/// Creates a folder and its parents unless it exists. InputError if that fails.
void make_folder(const std::string& path);

}  // namespace attsvm::internal
