// Included once per instruction set, inside the target's HWY_BEFORE_NAMESPACE … HWY_AFTER_NAMESPACE by the header
// itself; see Highway's foreach_target.h.
#if defined(ATTSVM_BASE_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTSVM_BASE_LANES_INL_H
#undef ATTSVM_BASE_LANES_INL_H
#else
#define ATTSVM_BASE_LANES_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "attsvm/array.h"

// Lambdas do not inherit HWY_INLINE from their function, and a call in an inner loop would spill all registers.
#undef ATTSVM_INLINED
#define ATTSVM_INLINED HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Work, int... k>
HWY_INLINE void each_of(Work work, std::integer_sequence<int, k...>) {
  (work(std::integral_constant<int, k>{}), ...);
}

/// Calls work(0), …, work(kCount − 1) without a loop, so that arrays it indexes stay in registers.
template <int kCount, class Work>
HWY_INLINE void each(Work work) {
  each_of(work, std::make_integer_sequence<int, kCount>{});
}

// Emulated vectors are single numbers or loops over their lanes: long blocks of them only keep the compiler busy, clang
// for minutes.
constexpr int kMostInBlock = HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR ? 2 : 8;

template <class Work, int... k>
HWY_INLINE void in_block(Index size, Index first, Work work, std::integer_sequence<int, k...>) {
  static_cast<void>(((size == k + 1 && (work(std::integral_constant<int, k + 1>{}, first), true)) || ...));
}

/// Calls work(size, first) for blocks of at most kMostInBlock, of sizes as equal as possible; `size` is a constant.
template <class Work>
HWY_INLINE void in_blocks(Index count, Work work) {
  Index first = 0;
  for (Index left = (count + kMostInBlock - 1) / kMostInBlock; left > 0; --left) {
    const Index size = (count - first + left - 1) / left;
    in_block(size, first, work, std::make_integer_sequence<int, kMostInBlock>{});
    first += size;
  }
}

/// A block of vectors.
template <class D, int kCount>
struct Block {
  hn::Vec<D> v[static_cast<std::size_t>(kCount)];
  HWY_INLINE hn::Vec<D>& operator[](int k) { return v[k]; }
  HWY_INLINE const hn::Vec<D>& operator[](int k) const { return v[k]; }
};

/// x ← e^x for x ≤ 0, to 1.5 units of 2^-53; 0 below −708. Lanes do not interact, so results do not depend on the width
/// of vectors (but on whether the machine has fused multiply-add). Takes a block of vectors, whose latencies overlap.
template <int kCount, class D>
HWY_INLINE void exp_nonpositive(D tag, Block<D, kCount>& x) {
  const hn::RebindToSigned<D> integers;
  // e^x = 2^k e^r with k = round(x / log 2); adding 1.5·2^52 rounds, and leaves k in the low bits.
  const auto rounder = hn::Set(tag, 0x1.8p52);
  Block<D, kCount> k, r, q;
  each<kCount>([&](auto i) ATTSVM_INLINED { k[i] = hn::MulAdd(x[i], hn::Set(tag, 0x1.71547652b82fep+0), rounder); });
  each<kCount>([&](auto i) ATTSVM_INLINED {
    r[i] = hn::NegMulAdd(hn::Sub(k[i], rounder), hn::Set(tag, 0x1.62e42fefa3000p-1), x[i]);
  });
  each<kCount>([&](auto i) ATTSVM_INLINED {
    r[i] = hn::NegMulAdd(hn::Sub(k[i], rounder), hn::Set(tag, 0x1.3de6af278ece6p-42), r[i]);
  });
  // e^r = 1 + r + r² q(r); q interpolates at Chebyshev's points of |r| ≤ log(2)/2, error 2e-17.
  each<kCount>([&](auto i) ATTSVM_INLINED {
    q[i] = hn::MulAdd(hn::Set(tag, 0x1.af38d53857513p-26), r[i], hn::Set(tag, 0x1.2891a8c1d838dp-22));
  });
  const auto next = [&](double coefficient) ATTSVM_INLINED {
    each<kCount>([&](auto i) ATTSVM_INLINED { q[i] = hn::MulAdd(q[i], r[i], hn::Set(tag, coefficient)); });
  };
  next(0x1.71de0d9c145d0p-19);
  next(0x1.a019b8ef67c6cp-16);
  next(0x1.a01a01a7c8d47p-13);
  next(0x1.6c16c17893833p-10);
  next(0x1.11111111109adp-7);
  next(0x1.5555555553d4fp-5);
  next(0x1.5555555555556p-3);
  next(0x1.0000000000001p-1);
  each<kCount>([&](auto i) ATTSVM_INLINED { q[i] = hn::MulAdd(hn::Mul(r[i], r[i]), q[i], r[i]); });
  each<kCount>([&](auto i) ATTSVM_INLINED {
    const auto power = hn::BitCast(integers, hn::Add(q[i], hn::Set(tag, 1.0)));
    const auto scaled = hn::Add(power, hn::ShiftLeft<52>(hn::BitCast(integers, k[i])));
    x[i] = hn::IfThenElseZero(hn::Ge(x[i], hn::Set(tag, -708.0)), hn::BitCast(tag, scaled));
  });
}

}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
