#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace attsvm {

/// What the caller gave cannot be used: a bad argument, a bad file, a full disk. what() is one line that names the
/// place (file, array, index), the value and the rule it breaks. Anything else that the library throws is a bug or
/// std::bad_alloc.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs `work`; an InputError from it gets `place: ` put before its message.
template <class Work>
decltype(auto) with_place(const std::string& place, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const InputError& error) {
    throw InputError(place + ": " + error.what());
  }
}

}  // namespace attsvm
