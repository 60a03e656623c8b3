#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace attsvm {

/// Thrown where attsvm cannot use what the caller gave: a bad argument, a bad file, a full disk. what() is one line
/// that names the place (file, array, index), the value and the rule that it breaks. Any other exception of the library
/// is std::bad_alloc or a bug.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns what `work` returns. An InputError from `work` is thrown again with `place: ` before its message.
template <class Work>
decltype(auto) with_place(const std::string& place, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const InputError& error) {
    throw InputError(place + ": " + error.what());
  }
}

}  // namespace attsvm
