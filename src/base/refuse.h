#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "attsvm/error.h"

namespace attsvm::internal {

/// The text with control characters replaced by \xNN, so that a message with a name from a file stays one line.
std::string printable(std::string_view text);

/// Throws an InputError with a formatted message, made printable.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(printable(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace attsvm::internal
