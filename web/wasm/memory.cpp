#include "base/memory.h"

// A page learns what memory it has only by asking for it.
namespace attsvm::internal {
void require_memory(double, const std::string&) {}
}  // namespace attsvm::internal
