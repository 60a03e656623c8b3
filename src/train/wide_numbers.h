#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace attsvm::internal {

/// The number x·2^{512·block}: it keeps all its digits whatever its size. In ordinary ranges the block is 0 and x the
/// number itself.
struct WideNumber {
  double x = 0, block = 0;
};

constexpr double kBlock = 0x1p512, kBlockInverse = 0x1p-512;
constexpr double kHighest = 0x1p256, kLowest = 0x1p-256;  // numbers between them, and their squares, lose no digits
constexpr double kLogBlock = 354.89135644669199842;       // log 2^512

/// The same number with x from 2^-256 up to 2^256, or x = 0.
inline WideNumber normal(WideNumber number) {
  const double size = std::abs(number.x);
  if (size >= kLowest && size < kHighest) return number;
  if (size == 0 || !std::isfinite(size)) return {number.x, 0};
  for (; std::abs(number.x) >= kHighest; number.block += 1) number.x *= kBlockInverse;
  for (; std::abs(number.x) < kLowest; number.block -= 1) number.x *= kBlock;
  return number;
}

/// x of the number in a block that is not below its own; may underflow to 0.
inline double in_block(const WideNumber& number, double block) {
  const double apart = block - number.block;
  if (apart == 0 || number.x == 0) return number.x;
  return apart == 1 ? number.x * kBlockInverse : apart == 2 ? number.x * kBlockInverse * kBlockInverse : 0;
}

/// An ordinary number in units of 2^{512·block}; may overflow or underflow.
inline double in_units_of(double number, double block) {
  for (int k = 0; k < 3 && block + k < 0; ++k) number *= kBlock;
  for (int k = 0; k < 3 && block - k > 0; ++k) number *= kBlockInverse;
  return number;
}

/// The block that holds both numbers: the larger one of those that are not zero.
inline double common_block(const WideNumber& a, const WideNumber& b) {
  return a.x == 0 ? b.block : b.x == 0 ? a.block : std::max(a.block, b.block);
}

/// e^{log_scale}, by which many numbers are multiplied.
class WideScale {
 public:
  explicit WideScale(double log_scale) {
    if (!std::isfinite(log_scale)) return;  // the scale of zero
    block_ = std::round(log_scale / kLogBlock);
    factor_ = std::exp(log_scale - block_ * kLogBlock);
  }
  WideNumber times(double a) const {
    const WideNumber number = normal({a, 0});
    return normal({number.x * factor_, number.block + block_});
  }

 private:
  double factor_ = 0, block_ = 0;
};

}  // namespace attsvm::internal
