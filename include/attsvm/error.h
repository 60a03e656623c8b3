#pragma once

#include <stdexcept>

namespace attsvm {

/// What the caller gave cannot be used: a bad argument, a bad file, a full disk. what() is one line that names the
/// place (file, array, index), the value and the rule it breaks. Anything else that the library throws is a bug or
/// std::bad_alloc.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attsvm
