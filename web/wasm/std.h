// Included before every file: what Emscripten's C++ library does not have yet.
#pragma once

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <version>

namespace std {  // NOLINT: where the library's own would be

#ifndef __cpp_lib_bit_cast
template <class To, class From>
To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
#endif

#ifndef __cpp_lib_smart_ptr_for_overwrite
template <class Array>
unique_ptr<Array> make_unique_for_overwrite(size_t count) {
  return unique_ptr<Array>(new remove_extent_t<Array>[count]);
}
#endif

#ifndef __cpp_lib_to_chars
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  char* end = nullptr;
  const double read = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  value = read;
  return {first + (end - text.c_str()), errc()};
}
#endif

}  // namespace std
