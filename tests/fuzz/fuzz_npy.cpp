#include "attsvm/files.h"
#include "fuzz.h"
#include "io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attsvm;
  const fuzz::MemoryFile file(data, size);
  fuzz::refuse_or([&] {
    const Array array = read_npy(file.path());
    const Array native = to_native(array);
    const std::string text = npy_header(native);
    const NpyHeader header =
        read_npy_header(std::as_bytes(std::span(text)), text.size() + static_cast<std::size_t>(native.bytes()));
    fuzz::require(header.array.shape == array.shape && header.array.scalar == array.scalar, "npy header differs");
    Array numbers = to_f64(array);
    fuzz::require(f64_span(numbers).size() == f64_span(to_f64(native)).size(), "to_native changes the size");
    require_finite(numbers, "array");
    to_indices(array, "array");
  });
  return 0;
}
