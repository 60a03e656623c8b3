#include <cstring>

#include "attsvm/files.h"
#include "attsvm/report.h"
#include "base/refuse.h"
#include "io/shards.h"

namespace attsvm {

using namespace internal;

namespace {

/// Appends a code point as UTF-8; an invalid one becomes the replacement character.
void append_utf8(std::string& text, std::uint32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace

std::vector<std::string> load_token_names(const std::string& path, const AttentionTask& task, Threads& threads) {
  constexpr const char* kName = "x_token_names";
  if (!manifest_of(path).empty()) return {};  // shards have no arrays of the user's own
  const NpzFile file(path);
  if (!file.has(kName)) return {};
  const Array array = to_native(file.read(kName, threads));
  const Index width = array.scalar == Scalar::character && array.rank() > 0 ? array.shape.back() : 0;
  if (array.scalar != Scalar::character || array.rank() < 2) {
    refuse("{}: {} has type {}; must be one text per token", path, kName, name_of(array.scalar));
  }
  if (array.size() != task.tokens() * width) {
    refuse("{}: {} has {} texts; the task has {} tokens", path, kName, width == 0 ? 0 : array.size() / width,
           task.tokens());
  }
  std::vector<std::string> names(static_cast<std::size_t>(task.tokens()));
  const std::byte* at = array.data;
  for (std::string& name : names) {
    for (Index k = 0; k < width; ++k, at += sizeof(std::uint32_t)) {
      std::uint32_t code = 0;
      std::memcpy(&code, at, sizeof code);
      if (code != 0) append_utf8(name, code);
    }
  }
  return names;
}

}  // namespace attsvm
