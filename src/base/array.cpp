#include "attsvm/array.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/finite_mark.h"
#include "base/refuse.h"
#include "base/simd.h"

namespace attsvm {

using namespace internal;

namespace {

struct ScalarFacts {
  std::string_view name;
  Index bytes;
  bool floating;
};

constexpr std::array<ScalarFacts, 14> kScalars{{{"float64", 8, true},
                                                {"float32", 4, true},
                                                {"float16", 2, true},
                                                {"bfloat16", 2, true},
                                                {"int64", 8, false},
                                                {"int32", 4, false},
                                                {"int16", 2, false},
                                                {"int8", 1, false},
                                                {"uint64", 8, false},
                                                {"uint32", 4, false},
                                                {"uint16", 2, false},
                                                {"uint8", 1, false},
                                                {"bool", 1, false},
                                                {"text", 4, false}}};

const ScalarFacts& facts(Scalar scalar) { return kScalars[static_cast<std::size_t>(scalar)]; }

/// Calls use(x) with an x of the C++ type that stores numbers of this scalar type.
template <class Use>
auto dispatch(Scalar scalar, Use&& use) {
  switch (scalar) {
    case Scalar::f64:
      return use(double{});
    case Scalar::f32:
      return use(float{});
    case Scalar::f16:
      return use(Eigen::half{});
    case Scalar::bf16:
      return use(Eigen::bfloat16{});
    case Scalar::i64:
      return use(std::int64_t{});
    case Scalar::i32:
      return use(std::int32_t{});
    case Scalar::i16:
      return use(std::int16_t{});
    case Scalar::i8:
      return use(std::int8_t{});
    case Scalar::u64:
      return use(std::uint64_t{});
    case Scalar::character:
    case Scalar::u32:
      return use(std::uint32_t{});
    case Scalar::u16:
      return use(std::uint16_t{});
    case Scalar::u8:
    case Scalar::boolean:
      return use(std::uint8_t{});
  }
  throw std::logic_error("unknown scalar type");
}

template <class T>
T load(const std::byte* from, bool swap) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  if (swap) std::reverse(bytes.begin(), bytes.end());
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof(T));
  return value;
}

/// Calls visit(position in C order, number of the stored type) for every number, in C order.
template <class Visit>
void for_each(const Array& array, Visit&& visit) {
  const Index count = array.size();
  dispatch(array.scalar, [&](auto example) {
    using T = decltype(example);
    const auto at = [&](Index position) {
      return load<T>(array.data + position * static_cast<Index>(sizeof(T)), array.foreign_endian);
    };
    if (!array.fortran_order) {
      for (Index i = 0; i < count; ++i) visit(i, at(i));
      return;
    }
    std::vector<Index> index(array.shape.size(), 0);
    for (Index c_position = 0; c_position < count; ++c_position) {
      Index f_position = 0;
      for (std::size_t axis = array.shape.size(); axis-- > 0;)
        f_position = f_position * array.shape[axis] + index[axis];
      visit(c_position, at(f_position));
      for (std::size_t axis = array.shape.size(); axis-- > 0;) {
        if (++index[axis] < array.shape[axis]) break;
        index[axis] = 0;
      }
    }
  });
}

/// Appends a character as UTF-8. False: it is not one of Unicode's.
bool append_utf8(std::uint32_t c, std::string& out) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (c < 0x80) {
    byte(c);
    return true;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;   // bytes that follow the first
  byte((0xFF00U >> (more + 1) & 0xFFU) | c >> 6 * more);  // as many ones as bytes
  for (int k = more - 1; k >= 0; --k) byte(0x80U | (c >> 6 * k & 0x3FU));
  return true;
}

/// The characters of UTF-8 text; bytes that are not valid UTF-8 stand for themselves.
std::vector<std::uint32_t> characters_of(std::string_view text) {
  std::vector<std::uint32_t> characters;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    std::uint32_t c = more == 0 ? first : first & (0x3FU >> more);
    std::size_t k = 1;
    for (; k <= static_cast<std::size_t>(more) && i + k < text.size(); ++k)
      c = c << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    characters.push_back(c);
    i += k;
  }
  return characters;
}

template <class T>
Array own_vector(Scalar scalar, std::vector<T> numbers, std::vector<Index> shape) {
  static constexpr std::byte kNothing{};  // data of an empty array: given() must be true
  auto owner = std::make_shared<const std::vector<T>>(std::move(numbers));
  const auto* data = owner->empty() ? &kNothing : reinterpret_cast<const std::byte*>(owner->data());
  Array array(scalar, std::move(shape), data);
  if (array.size() != static_cast<Index>(owner->size()))
    throw std::logic_error("Array::own: shape does not fit the numbers");
  array.owner = std::move(owner);
  return array;
}

Array view_of(Scalar scalar, const void* numbers, std::vector<Index> shape) {
  return {scalar, std::move(shape), static_cast<const std::byte*>(numbers)};
}

bool is_native(const Array& array) { return !array.foreign_endian && (!array.fortran_order || array.rank() < 2); }

/// The index of the number at `position` in C order, as messages show it: "[3,2,1]".
std::string place_text(const Array& array, Index position) {
  std::vector<Index> index(array.shape.size());
  for (std::size_t axis = array.shape.size(); axis-- > 0;) {
    index[axis] = position % array.shape[axis];
    position /= array.shape[axis];
  }
  return index.empty() ? "" : fmt::format("[{}]", fmt::join(index, ","));
}

}  // namespace

Index size_of(Scalar scalar) { return facts(scalar).bytes; }
std::string_view name_of(Scalar scalar) { return facts(scalar).name; }
bool is_floating(Scalar scalar) { return facts(scalar).floating; }

Index Array::size() const {
  Index count = 1;
  for (const Index extent : shape) count *= extent;
  return count;
}

Index Array::bytes() const { return size() * size_of(scalar); }

Array Array::view(const double* numbers, std::vector<Index> shape) {
  return view_of(Scalar::f64, numbers, std::move(shape));
}
Array Array::view(const float* numbers, std::vector<Index> shape) {
  return view_of(Scalar::f32, numbers, std::move(shape));
}
Array Array::view(const Index* numbers, std::vector<Index> shape) {
  return view_of(Scalar::i64, numbers, std::move(shape));
}
Array Array::own(std::vector<double> numbers, std::vector<Index> shape) {
  return own_vector(Scalar::f64, std::move(numbers), std::move(shape));
}
Array Array::own(std::vector<Index> numbers, std::vector<Index> shape) {
  return own_vector(Scalar::i64, std::move(numbers), std::move(shape));
}
Array Array::own(const std::vector<bool>& flags, std::vector<Index> shape) {
  return own_vector(Scalar::boolean, std::vector<std::uint8_t>(flags.begin(), flags.end()), std::move(shape));
}
Array Array::text(std::string_view ascii) {
  return own_vector(Scalar::character, std::vector<std::uint32_t>(ascii.begin(), ascii.end()),
                    {static_cast<Index>(ascii.size())});
}
Array Array::texts(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::uint32_t>> rows;
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, rows.emplace_back(characters_of(text)).size());
  std::vector<std::uint32_t> characters(texts.size() * longest, 0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), characters.begin() + static_cast<std::ptrdiff_t>(i * longest));
  return own_vector(Scalar::character, std::move(characters),
                    {static_cast<Index>(texts.size()), static_cast<Index>(longest)});
}
Array Array::own(const Eigen::Ref<const RowMatrix>& matrix) {
  std::vector<double> numbers(static_cast<std::size_t>(matrix.size()));
  Eigen::Map<RowMatrix>(numbers.data(), matrix.rows(), matrix.cols()) = matrix;
  return own(std::move(numbers), {matrix.rows(), matrix.cols()});
}

std::string shape_text(std::span<const Index> shape) { return fmt::format("({})", fmt::join(shape, ",")); }

Array to_native(const Array& array) {
  if (is_native(array)) return array;
  std::vector<std::byte> bytes(static_cast<std::size_t>(array.bytes()));
  for_each(array, [&]<class T>(Index i, T number) {
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), static_cast<const void*>(&number), sizeof(T));
  });
  Array copy = array;
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  copy.fortran_order = copy.foreign_endian = false;
  copy.data = owner->data();
  copy.owner = owner;
  return copy;
}

Array to_f64(const Array& array, std::string_view name) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(array.data) % alignof(double) == 0;
  if (array.scalar == Scalar::f64 && is_native(array) && aligned) return array;
  std::vector<double> numbers(static_cast<std::size_t>(array.size()));
  if (array.scalar == Scalar::f64 && is_native(array)) {
    std::copy_n(array.data, array.bytes(), reinterpret_cast<std::byte*>(numbers.data()));
  } else {
    for_each(array, [&](Index i, auto number) {
      if constexpr (std::is_integral_v<decltype(number)> && sizeof(number) == 8) {
        constexpr auto kLargest = decltype(number){1} << 53;
        if (number > kLargest || (std::is_signed_v<decltype(number)> && number < -kLargest))
          refuse("{}{} = {}; integers beyond 2^53 are not exact as double", name, place_text(array, i), number);
      }
      numbers[static_cast<std::size_t>(i)] = static_cast<double>(number);
    });
  }
  Array copy = Array::own(std::move(numbers), array.shape);
  FiniteMark::set(copy, FiniteMark::of(array) || !is_floating(array.scalar));
  return copy;
}

std::vector<Index> to_indices(const Array& array, std::string_view name) {
  if (is_floating(array.scalar) || array.scalar >= Scalar::boolean) {
    refuse("{} has type {}; must be integers", name, name_of(array.scalar));
  }
  std::vector<Index> indices(static_cast<std::size_t>(array.size()));
  for_each(array, [&](Index i, auto number) {
    using T = decltype(number);
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
        refuse("{}{} = {}; must fit a signed 64-bit integer", name, place_text(array, i), number);
      }
    }
    if constexpr (std::is_integral_v<T>) indices[static_cast<std::size_t>(i)] = static_cast<Index>(number);
  });
  return indices;
}

std::string to_text(const Array& array, std::string_view name) {
  if (array.scalar != Scalar::character || array.rank() != 1)
    refuse("{} has type {}; must be one text", name, name_of(array.scalar));
  std::string text;
  for_each(array, [&](Index, auto character) {
    if (static_cast<double>(character) >= 128) refuse("{} must be plain ASCII text", name);
    if (static_cast<double>(character) > 0) text.push_back(static_cast<char>(character));
  });
  return text;
}

std::vector<std::string> to_texts(const Array& array, std::string_view name) {
  if (array.scalar != Scalar::character || array.rank() != 2)
    refuse("{} has type {} and shape {}; must be one text each", name, name_of(array.scalar), shape_text(array.shape));
  std::vector<std::string> texts(static_cast<std::size_t>(array.shape[0]));
  const Index longest = array.shape[1];
  for_each(array, [&](Index i, auto character) {
    if constexpr (std::is_same_v<decltype(character), std::uint32_t>) {
      if (character > 0 && !append_utf8(character, texts[static_cast<std::size_t>(i / longest)]))
        refuse("{}[{}] has a character {:#x}; there is none in Unicode", name, i / longest, character);
    }
  });
  return texts;
}

std::span<const double> f64_span(const Array& array) {
  return {reinterpret_cast<const double*>(array.data), static_cast<std::size_t>(array.size())};
}

void require_finite(Array& array, std::string_view name) {
  if (FiniteMark::of(array)) return;
  const auto numbers = f64_span(array);
  const std::size_t bad = first_nonfinite(numbers);
  if (bad < numbers.size()) {
    refuse("{}{} = {}; must be finite", name, place_text(array, static_cast<Index>(bad)), numbers[bad]);
  }
  FiniteMark::set(array, true);
}

}  // namespace attsvm
