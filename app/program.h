#pragma once

namespace attsvm {

/// The command line, from its words to its exit code. The program is this and nothing else; so is `python -m attsvm`.
int run_program(int argc, const char* const* argv);

}  // namespace attsvm
