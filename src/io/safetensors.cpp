#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "attsvm/files.h"
#include "base/refuse.h"
#include "io/file.h"
#include "io/json.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array<std::pair<std::string_view, Scalar>, 13> kTypes{{{"F64", Scalar::f64},
                                                                      {"F32", Scalar::f32},
                                                                      {"F16", Scalar::f16},
                                                                      {"BF16", Scalar::bf16},
                                                                      {"I64", Scalar::i64},
                                                                      {"I32", Scalar::i32},
                                                                      {"I16", Scalar::i16},
                                                                      {"I8", Scalar::i8},
                                                                      {"U64", Scalar::u64},
                                                                      {"U32", Scalar::u32},
                                                                      {"U16", Scalar::u16},
                                                                      {"U8", Scalar::u8},
                                                                      {"BOOL", Scalar::boolean}}};
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());

std::uint64_t whole_number(const nlohmann::json& value, std::string_view what) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
    refuse("{} must hold whole numbers from 0 to 2^63-1", what);
  return value.get<std::uint64_t>();
}

struct Extent {
  std::uint64_t begin, end;
  std::string name;
};

/// One tensor of the header; `data` are the bytes after it.
Array read_tensor(const nlohmann::json& entry, Bytes data, Extent& extent) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    refuse("must have dtype, shape and data_offsets, and nothing else");
  }
  const auto& dtype = entry["dtype"];
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) {
    return dtype.is_string() && dtype.get<std::string>() == type.first;
  });
  if (known == kTypes.end()) refuse("dtype {} is not supported", dtype.dump(-1, ' ', true));
  Array array(known->second, {}, nullptr);
  const auto& shape = entry["shape"];
  const auto& offsets = entry["data_offsets"];
  if (!shape.is_array() || shape.size() > 32) refuse("shape must be a list of at most 32 sizes");
  if (!offsets.is_array() || offsets.size() != 2) refuse("data_offsets must be [begin, end]");
  auto size = static_cast<std::uint64_t>(size_of(array.scalar));
  for (const auto& item : shape) {
    const std::uint64_t extent_size = whole_number(item, "shape");
    array.shape.push_back(static_cast<Index>(extent_size));
    if (__builtin_mul_overflow(size, extent_size, &size) || size > kMost)
      refuse("shape {} is too large", shape_text(array.shape));
  }
  extent.begin = whole_number(offsets[0], "data_offsets");
  extent.end = whole_number(offsets[1], "data_offsets");
  if (extent.begin > extent.end || extent.end > data.size()) {
    refuse("data_offsets [{},{}] reach beyond the {} bytes of data", extent.begin, extent.end, data.size());
  }
  if (extent.end - extent.begin != size) {
    refuse("shape {} of {} needs {} bytes, but data_offsets give {}", shape_text(array.shape), name_of(array.scalar),
           size, extent.end - extent.begin);
  }
  array.data = data.data() + extent.begin;
  return array;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  static_assert(std::endian::native == std::endian::little);
  with_place(path, [&] {
    const auto file = InputFile::open(path);
    const Bytes bytes = file->bytes();
    std::uint64_t length = 0;
    if (bytes.size() < sizeof(length)) refuse("not a safetensors file (shorter than 8 bytes)");
    std::memcpy(&length, bytes.data(), sizeof(length));
    if (length > bytes.size() - sizeof(length) || length > kLongestHeader) {
      refuse("not a safetensors file, or cut off (its header would take {} bytes of {})", length, bytes.size());
    }
    const nlohmann::json header = parse_json({reinterpret_cast<const char*>(bytes.data()) + sizeof(length), length});
    if (!header.is_object()) refuse("header must be a JSON object");
    const Bytes data = bytes.subspan(sizeof(length) + length);
    std::vector<Extent> extents;
    for (const auto& item : header.items()) {
      const std::string& name = item.key();
      const nlohmann::json& entry = item.value();
      if (name == "__metadata__") {
        if (!entry.is_object()) refuse("__metadata__ must be an object");
        for (const auto& [key, text] : entry.items())
          metadata_[key] = text.is_string() ? text.get<std::string>() : text.dump();
        continue;
      }
      Extent extent{0, 0, name};
      Array tensor = with_place("tensor '" + printable(name) + "'", [&] { return read_tensor(entry, data, extent); });
      tensor.owner = file;
      tensors_.emplace(name, std::move(tensor));
      extents.push_back(std::move(extent));
    }
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < extents.size(); ++i) {
      if (extents[i].begin < extents[i - 1].end)
        refuse("tensors '{}' and '{}' overlap", extents[i - 1].name, extents[i].name);
    }
  });
}

const Array& SafetensorsFile::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) refuse("{}: has no tensor '{}'", path_, name);
  return found->second;
}

}  // namespace attsvm
