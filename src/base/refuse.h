#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "attsvm/error.h"

namespace attsvm {

/// Throws an InputError with a formatted message.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(fmt::format(format, std::forward<Args>(args)...));
}

/// Runs `work`; an InputError from it gets `place: ` put before its message.
template <class Work>
decltype(auto) with_place(const std::string& place, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const InputError& error) {
    refuse("{}: {}", place, error.what());
  }
}

}  // namespace attsvm
