#include "base/kernels/vector_exp.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/kernels/vector_exp.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {

/// Handles as many whole blocks as there are from entry `from` on; returns the entry where it stopped.
template <int kCount, class D>
Index exp_blocks(D tag, double* x, Index from, Index count) {
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  for (; from + kCount * lanes <= count; from += kCount * lanes) {
    Block<D, kCount> block;
    each<kCount>([&](auto k) ATTSVM_INLINED { block[k] = hn::LoadU(tag, x + from + k * lanes); });
    exp_nonpositive(tag, block);
    each<kCount>([&](auto k) ATTSVM_INLINED { hn::StoreU(block[k], tag, x + from + k * lanes); });
  }
  return from;
}

void exp_all(double* x, Index count) {
  const hn::ScalableTag<double> full;
  const hn::CappedTag<double, 1> one;
  exp_blocks<1>(one, x, exp_blocks<1>(full, x, exp_blocks<4>(full, x, 0, count), count), count);
}

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {
HWY_EXPORT(exp_all);
void exp_nonpositive(double* x, Index count) { HWY_DYNAMIC_DISPATCH(exp_all)(x, count); }
}  // namespace attsvm::internal
#endif
