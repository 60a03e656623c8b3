#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "attsvm/error.h"

namespace attsvm {

/// Names from files may hold anything; shown, control characters become \xNN and the text stays one line.
std::string printable(std::string_view text);

/// Throws an InputError with a formatted message, made printable.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(printable(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace attsvm
