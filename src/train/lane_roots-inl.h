// Included once per instruction set; see base/kernels/lanes-inl.h.
#if defined(ATTSVM_TRAIN_LANE_ROOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTSVM_TRAIN_LANE_ROOTS_INL_H
#undef ATTSVM_TRAIN_LANE_ROOTS_INL_H
#else
#define ATTSVM_TRAIN_LANE_ROOTS_INL_H
#endif

#include "base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {

/// x ← 1/√x to a few units of rounding, for normal x > 0; finite for x = 0. Faster than the instructions for √ and /:
/// starts from the exponent, and Newton's method doubles the digits four times, for several vectors at once. The same
/// bits on every machine with fused multiply-add.
template <int kCount, class D>
HWY_INLINE void invert_roots(D tag, Block<D, kCount>& x) {
  const hn::RebindToSigned<D> integers;
  Block<D, kCount> y;
  each<kCount>([&](auto i) ATTSVM_INLINED {
    const auto half = hn::ShiftRight<1>(hn::BitCast(integers, x[i]));
    y[i] = hn::BitCast(tag, hn::Sub(hn::Set(integers, 0x5FE6EB50C7B537A9), half));
    x[i] = hn::Mul(hn::Set(tag, 0.5), x[i]);
  });
  each<4>([&](auto) ATTSVM_INLINED {
    each<kCount>([&](auto i) ATTSVM_INLINED {
      y[i] = hn::Mul(y[i], hn::NegMulAdd(hn::Mul(x[i], y[i]), y[i], hn::Set(tag, 1.5)));
    });
  });
  x = y;
}

}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
