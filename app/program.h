#pragma once

namespace attsvm::internal {

/// Runs the command line and returns its exit code. Both the program and `python -m attsvm` call it.
int run_program(int argc, const char* const* argv);

/// Prints, once, that memory is short, without asking for any. Returns the exit code that goes with it.
int say_out_of_memory() noexcept;

}  // namespace attsvm::internal
