#pragma once

namespace attsvm::internal {

/// Runs the command line and returns its exit code. Both the program and `python -m attsvm` call it.
int run_program(int argc, const char* const* argv);

}  // namespace attsvm::internal
