#include "base/simd.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Whether one of the numbers is NaN or infinite: x·0 is 0 for finite x and NaN otherwise, and NaN survives a sum.
template <class T>
bool all_finite(const T* numbers, std::size_t count) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  const auto zero = hn::Zero(tag);
  auto sum0 = zero, sum1 = zero, sum2 = zero, sum3 = zero;
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    sum0 = hn::MulAdd(hn::LoadU(tag, numbers + i), zero, sum0);
    sum1 = hn::MulAdd(hn::LoadU(tag, numbers + i + lanes), zero, sum1);
    sum2 = hn::MulAdd(hn::LoadU(tag, numbers + i + 2 * lanes), zero, sum2);
    sum3 = hn::MulAdd(hn::LoadU(tag, numbers + i + 3 * lanes), zero, sum3);
  }
  T rest = 0;
  for (; i < count; ++i) rest += numbers[i] * T{0};
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  return rest == 0 && hn::AllTrue(tag, hn::Eq(sum, zero));
}

bool all_finite_f64(const double* numbers, std::size_t count) { return all_finite(numbers, count); }
bool all_finite_f32(const float* numbers, std::size_t count) { return all_finite(numbers, count); }

}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {
namespace {

HWY_EXPORT(all_finite_f64);
HWY_EXPORT(all_finite_f32);

bool all_finite(const double* numbers, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(all_finite_f64)(numbers, count);
}
bool all_finite(const float* numbers, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(all_finite_f32)(numbers, count);
}

template <class T>
std::size_t first_bad(std::span<const T> numbers) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kBlock) {
    const auto block = numbers.subspan(begin, std::min(kBlock, numbers.size() - begin));
    if (all_finite(block.data(), block.size())) continue;
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (!std::isfinite(block[i])) return begin + i;
    }
  }
  return numbers.size();
}

}  // namespace

std::size_t first_nonfinite(std::span<const double> numbers) { return first_bad(numbers); }
std::size_t first_nonfinite(std::span<const float> numbers) { return first_bad(numbers); }

std::vector<std::string> available_instructions() {
  std::vector<std::string> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string chosen_instructions() { return available_instructions().front(); }

}  // namespace attsvm::internal
#endif  // HWY_ONCE
