// Helpers for tests of the vector loops.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "support.h"

namespace attsvm::test {

/// Runs `body` once per instruction set that the binary has code for and this machine supports.
void for_every_target(const std::function<void()>& body);

/// Numbers in (−1, 1) at an address that no vector is aligned to, between NaNs: a loop that uses one of them gives NaN,
/// and the destructor expects that none of them was written.
template <class T>
class Guarded {
 public:
  /// `seed` 0: all zero.
  Guarded(Index count, unsigned seed);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  Index size() const { return static_cast<Index>(items_.size()) - 2 * kGuard; }
  T* data() { return items_.data() + kGuard; }
  const T* data() const { return items_.data() + kGuard; }
  T& operator[](Index i) { return data()[i]; }
  T operator[](Index i) const { return data()[i]; }
  std::vector<T> copy() const { return {data(), data() + size()}; }

 private:
  static constexpr Index kGuard = 17;
  std::vector<T> items_;
};
using Numbers = Guarded<double>;
extern template class Guarded<double>;
extern template class Guarded<float>;

/// A sum of products in long double, and the error that T may make in it: at most (n + 1)u Σ|a b| in any order, with or
/// without fused multiply-add, to first order in u.
class Sum {
 public:
  Sum& add(long double a, long double b = 1) {
    value_ += a * b;
    size_ += std::abs(a * b);
    ++terms_;
    return *this;
  }
  long double value() const { return value_; }
  template <class T>
  testing::AssertionResult is(T computed) const {
    const long double u = std::numeric_limits<T>::epsilon() / 2;
    const long double bound = 1.01L * static_cast<long double>(terms_ + 1) * u * size_;
    if (std::abs(computed - value_) <= bound) return testing::AssertionSuccess();
    return testing::AssertionFailure() << computed << " for " << static_cast<double>(value_) << ", off by more than "
                                       << static_cast<double>(bound);
  }

 private:
  long double value_ = 0, size_ = 0;
  Index terms_ = 0;
};

}  // namespace attsvm::test
