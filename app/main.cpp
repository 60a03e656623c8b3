#include "program.h"

#ifdef __linux__
#include <sched.h>

namespace {

// OpenBLAS starts a thread per processor while it is loaded, before main. We never use them, and where memory is short
// each of them asks for its buffer for ever, so that the program could not even end. So OpenBLAS is loaded on one
// processor: a function of .preinit_array runs before those of libraries.
cpu_set_t processors;

void load_libraries_on_one_processor() {
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) return;
  for (unsigned k = 0; k < CPU_SETSIZE; ++k) {
    if (!CPU_ISSET(k, &processors)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(k, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = load_libraries_on_one_processor;

}  // namespace
#endif

int main(int argc, char** argv) {
#ifdef __linux__
  if (CPU_COUNT(&processors) > 0) sched_setaffinity(0, sizeof processors, &processors);
#endif
  return attsvm::internal::run_program(argc, argv);
}
