#include "attsvm/files.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attsvm;
  const fuzz::MemoryFile input(data, size);
  fuzz::refuse_or([&] {
    const SafetensorsFile file(input.path());
    for (const auto& [name, tensor] : file.tensors()) {
      fuzz::require(tensor.bytes() <= static_cast<Index>(size), "a tensor is larger than its file");
      Array numbers = to_f64(file.tensor(name));
      fuzz::refuse_or([&] { require_finite(numbers, "tensor"); });
    }
  });
  return 0;
}
