#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>

#include "program.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace {

std::terminate_handler standard_end = std::abort;

[[noreturn]] void end_without_memory() { ::_exit(attsvm::internal::say_out_of_memory()); }

/// Where an exception ends the program: before main, or in a destructor. If memory was short, that is no bug.
[[noreturn]] void give_up() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the standard handler below shows it
  }
  standard_end();
  std::abort();
}

}  // namespace

#ifdef __linux__
// The linker sends requests of our own code here, which are Eigen's. If one fails while a matrix changes its size,
// Eigen 3.4 has freed the old block and would free it again on the way out, so the program ends on the spot. What is
// not finished by then does not appear under its name: an output file that is being written is unnamed, or is left as
// NAME.PID.partial where the file system has no unnamed files. Journals and run stores survive any end.
extern "C" {  // NOLINTBEGIN(bugprone-reserved-identifier): the linker chooses these names

void* __real_malloc(std::size_t);
void* __real_realloc(void*, std::size_t);

void* __wrap_malloc(std::size_t size) {
  void* memory = __real_malloc(size);
  if (memory == nullptr && size > 0) end_without_memory();
  return memory;
}

void* __wrap_realloc(void* memory, std::size_t size) {
  void* moved = __real_realloc(memory, size);
  if (moved == nullptr && size > 0) end_without_memory();
  return moved;
}

}  // NOLINTEND(bugprone-reserved-identifier)

namespace {

// OpenBLAS starts a thread per processor while it is loaded, before main. We never use them, and where memory is short
// each of them asks for its buffer for ever, so that the program could not even end. So OpenBLAS is loaded on one
// processor: a function of .preinit_array runs before those of libraries.
cpu_set_t processors;

void load_libraries_on_one_processor() {
  standard_end = std::set_terminate(give_up);
  std::set_new_handler(end_without_memory);
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
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond a limit on the size of files is an error like that of a full disk
#ifdef __linux__
  if (CPU_COUNT(&processors) > 0) sched_setaffinity(0, sizeof processors, &processors);
#endif
  return attsvm::internal::run_program(argc, argv);
}
