#include "fuzz.h"
#include "io/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attsvm;
  fuzz::refuse_or([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto document = parse_json(text);
    fuzz::require(text.find('\0') == text.npos, "JSON must not hold a zero byte");
    fuzz::require(parse_json(document.dump()) == document, "JSON does not survive being written and read");
  });
  return 0;
}
