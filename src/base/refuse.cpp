#include "base/refuse.h"

namespace attsvm::internal {

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7F) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace attsvm::internal
