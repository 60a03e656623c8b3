// Helpers for vector loops, compiled once per instruction set.
#if defined(ATTSVM_BASE_TAILS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTSVM_BASE_TAILS_INL_H_
#undef ATTSVM_BASE_TAILS_INL_H_
#else
#define ATTSVM_BASE_TAILS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "attsvm/array.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {

/// The first n < lanes numbers at p, then zeros; nothing beyond them is read.
template <class D>
HWY_INLINE auto load_first(D tag, const double* p, Index n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  double part[hwy::HWY_NAMESPACE::MaxLanes(D())] = {};
  std::copy_n(p, n, part);
  return hwy::HWY_NAMESPACE::LoadU(tag, part);
#else
  return hwy::HWY_NAMESPACE::MaskedLoad(hwy::HWY_NAMESPACE::FirstN(tag, static_cast<std::size_t>(n)), tag, p);
#endif
}

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
