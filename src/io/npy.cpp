#include "io/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <string_view>

#include "attsvm/files.h"
#include "base/refuse.h"

namespace attsvm::internal {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct Descr {
  std::string_view code;
  Scalar scalar;
};
constexpr std::array<Descr, 12> kDescrs{{{"f8", Scalar::f64},
                                         {"f4", Scalar::f32},
                                         {"f2", Scalar::f16},
                                         {"i8", Scalar::i64},
                                         {"i4", Scalar::i32},
                                         {"i2", Scalar::i16},
                                         {"i1", Scalar::i8},
                                         {"u8", Scalar::u64},
                                         {"u4", Scalar::u32},
                                         {"u2", Scalar::u16},
                                         {"u1", Scalar::u8},
                                         {"b1", Scalar::boolean}}};

/// Reads the header's dictionary, a Python literal: {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        take_descr(header.array);
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.array.fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.array.shape = tuple();
      } else {
        refuse("npy header: key '{}' is unknown or given twice", key.substr(0, 40));
      }
      if (accept('}')) break;
      expect(',');
    }
    skip();
    if (!rest_.empty()) refuse("npy header: something follows the dictionary");
    if (!descr || !order || !shape) refuse("npy header: must give descr, fortran_order and shape");
    if (header.array.scalar == Scalar::character) {  // the characters of a text become the last dimension
      if (header.array.fortran_order && header.array.rank() > 1) refuse("text in Fortran order is not supported");
      header.array.fortran_order = false;
      header.array.shape.push_back(text_length_);
    }
    return header;
  }

 private:
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size())); }

  bool accept(char wanted) {
    skip();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse("npy header: '{}' expected before '{}'", wanted, rest_.substr(0, 10));
  }

  std::string_view string() {
    skip();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) refuse("npy header: a string expected before '{}'", rest_.substr(0, 10));
    const auto text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    refuse("npy header: fortran_order must be True or False");
  }

  std::vector<Index> tuple() {
    std::vector<Index> extents;
    expect('(');
    while (!accept(')')) {
      skip();
      Index extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0) refuse("npy header: shape must hold whole numbers from 0 to 2^63-1");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      extents.push_back(extent);
      if (extents.size() > 32) refuse("npy header: shape has more than 32 sizes");
      if (accept(')')) break;
      expect(',');
    }
    return extents;
  }

  void take_descr(Array& array) {
    skip();
    if (!rest_.empty() && rest_.front() == '[') refuse("npy header: records are not supported; give plain numbers");
    const std::string_view descr = string();
    if (descr.size() > 2 && descr.size() < 12 && descr[1] == 'U') {
      const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), text_length_);
      if (error == std::errc() && end == descr.data() + descr.size() && text_length_ >= 0) {
        array.scalar = Scalar::character;
        array.foreign_endian = descr[0] == '>';
        return;
      }
    }
    const auto known = std::find_if(kDescrs.begin(), kDescrs.end(),
                                    [&](const Descr& d) { return descr.size() == 3 && descr.substr(1) == d.code; });
    if (known == kDescrs.end() || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) {
      refuse("type '{}' is not supported; must be float16/32/64, an integer type or bool", descr.substr(0, 40));
    }
    array.scalar = known->scalar;
    array.foreign_endian = descr[0] == '>' && size_of(array.scalar) > 1;
  }

  std::string_view rest_;
  Index text_length_ = 0;
};

}  // namespace

NpyHeader read_npy_header(Bytes start, std::size_t total) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.size() < 10 || !text.starts_with(kNpyMagic)) refuse("not a npy array (its first bytes differ)");
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(text[i])}; };
  const std::size_t version = byte(6), begin = version == 1 ? 10 : 12;
  if (version < 1 || version > 3) refuse("npy version {} is not supported; must be 1, 2 or 3", version);
  if (text.size() < begin) refuse("npy header is cut off");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - begin)
    refuse("npy header is cut off: {} bytes announced, {} there", length, text.size() - begin);

  NpyHeader header = Literal(text.substr(begin, length)).read();
  header.data_offset = begin + length;
  const std::size_t there = total - header.data_offset;
  std::size_t wanted = static_cast<std::size_t>(size_of(header.array.scalar));
  for (const Index extent : header.array.shape) {
    if (__builtin_mul_overflow(wanted, static_cast<std::size_t>(extent), &wanted) ||
        wanted > static_cast<std::size_t>(std::numeric_limits<Index>::max())) {
      refuse("shape {} is too large", shape_text(header.array.shape));
    }
  }
  if (wanted != there) {
    refuse("shape {} of {} needs {} bytes, but {} follow the header", shape_text(header.array.shape),
           name_of(header.array.scalar), wanted, there);
  }
  return header;
}

std::string npy_header(const Array& array) {
  std::vector<Index> shape = array.shape;
  std::string descr;
  if (array.scalar == Scalar::character) {
    descr = fmt::format("<U{}", shape.back());
    shape.pop_back();
  } else {
    const auto known =
        std::find_if(kDescrs.begin(), kDescrs.end(), [&](const Descr& d) { return d.scalar == array.scalar; });
    if (known == kDescrs.end()) throw std::logic_error("npy_header: type cannot be written");
    descr = fmt::format("{}{}", size_of(array.scalar) == 1 ? '|' : '<', known->code);
  }
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                       fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t used = 10 + dictionary.size() + 1;
  dictionary.append((64 - used % 64) % 64, ' ').push_back('\n');
  std::string header(kNpyMagic);
  header += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xFF), static_cast<char>(dictionary.size() >> 8)};
  return header + dictionary;
}

}  // namespace attsvm::internal

namespace attsvm {

using namespace internal;

Array read_npy(const std::string& path) {
  return with_place(path, [&] {
    auto file = InputFile::open(path);
    const NpyHeader header = read_npy_header(file->bytes(), file->bytes().size());
    Array array = header.array;
    array.data = file->bytes().data() + header.data_offset;
    array.owner = std::move(file);
    return array;
  });
}

}  // namespace attsvm
