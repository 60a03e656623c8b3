// attsvm/threads.h where there is one thread: a page from disk may not start others that share its memory.
#include "attsvm/threads.h"

#include <exception>

namespace attsvm {

struct Threads::Pool {};

Threads::Threads(int) {}
Threads::~Threads() = default;

int Threads::count() const { return 1; }
Device Threads::device() const { return Device::cpu; }

void Threads::for_each(std::int64_t chunks, const std::function<void(std::int64_t)>& work) {
  std::exception_ptr error;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    try {
      work(chunk);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace attsvm
