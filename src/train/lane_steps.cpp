#include "train/lane_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/lane_steps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "base/kernels/lanes-inl.h"
#include "train/lane_roots-inl.h"
#include "train/wide_numbers.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {

/// The loops for vectors of one width. Numbers are those of wide_numbers.h: x·2^{512·block}.
template <class D>
struct Steps {
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  static constexpr D tag{};
  static HWY_INLINE Index width() { return static_cast<Index>(hn::Lanes(tag)); }
  static HWY_INLINE V load(const double* at) { return hn::Load(tag, at); }
  static HWY_INLINE void store(V v, double* at) { hn::Store(v, tag, at); }
  static HWY_INLINE V set(double x) { return hn::Set(tag, x); }
  static HWY_INLINE V zero() { return hn::Zero(tag); }
  struct Wide {
    V x, block;
  };

  static HWY_INLINE Wide normal(Wide number) {
    for (int round = 0; round < 3; ++round) {
      const V size = hn::Abs(number.x);
      const M high = hn::Ge(size, set(kHighest)), low = hn::And(hn::Lt(size, set(kLowest)), hn::Gt(size, zero()));
      number.x = hn::IfThenElse(high, hn::Mul(number.x, set(kBlockInverse)), number.x);
      number.x = hn::IfThenElse(low, hn::Mul(number.x, set(kBlock)), number.x);
      number.block = hn::Add(number.block, hn::IfThenElseZero(high, set(1.0)));
      number.block = hn::Sub(number.block, hn::IfThenElseZero(low, set(1.0)));
    }
    return number;
  }

  /// x in the block `other`, which is not below its own; it vanishes if that is two or more above, as in Shared.
  static HWY_INLINE V in_block(V x, V block, V other) {
    const V apart = hn::Sub(other, block);
    const V far = hn::IfThenElseZero(hn::Eq(apart, set(1.0)), hn::Mul(x, set(kBlockInverse)));
    return hn::IfThenElse(hn::Eq(apart, zero()), x, far);
  }

  static constexpr double kLeast = 0x1p-400;  // numbers from here up need not be normal(): their squares are doubles

  /// What numbers of two blocks are multiplied by to share the higher one. Exact for numbers from kLeast up, except
  /// that those more than one block below the other vanish beside it.
  struct Shared {
    V block, first, second;
    HWY_INLINE Shared(V a, V b) : block(hn::Max(a, b)) {
      const V inverse = set(kBlockInverse), one = set(1.0), apart = hn::Sub(a, b);
      const V low_a = hn::IfThenElseZero(hn::Eq(apart, set(-1.0)), inverse);
      const V low_b = hn::IfThenElseZero(hn::Eq(apart, one), inverse);
      first = hn::IfThenElse(hn::Ge(apart, zero()), one, low_a);
      second = hn::IfThenElse(hn::Le(apart, zero()), one, low_b);
    }
  };

  static HWY_INLINE bool all_normal(V a, V b) {
    return hn::AllTrue(tag, hn::Ge(hn::Min(hn::Abs(a), hn::Abs(b)), set(kLeast)));
  }

  static HWY_INLINE V in_units_of(double number, V block) {
    V out = set(number);
    for (int k = 0; k < 3; ++k) {
      const V away = set(static_cast<double>(k));
      out = hn::IfThenElse(hn::Lt(hn::Add(block, away), zero()), hn::Mul(out, set(kBlock)), out);
      out = hn::IfThenElse(hn::Gt(hn::Sub(block, away), zero()), hn::Mul(out, set(kBlockInverse)), out);
    }
    return out;
  }

  static HWY_INLINE V common_block(Wide a, Wide b) {
    const M a_zero = hn::Eq(a.x, zero()), b_zero = hn::Eq(b.x, zero());
    return hn::IfThenElse(a_zero, b.block, hn::IfThenElse(b_zero, a.block, hn::Max(a.block, b.block)));
  }

  /// The factor e^{top}/n of a gradient, as in WideScale.
  struct Scale {
    V factor, block;
    Scale(const LaneStep& step) {  // NOLINT: made where it is used
      const V scale = hn::Sub(load(step.top), set(std::log(step.queries)));
      const M some = hn::Gt(scale, set(-1e299));  // else the gradient is zero
      block = hn::IfThenElseZero(some, hn::Round(hn::Mul(scale, set(1 / kLogBlock))));
      const V rest = hn::IfThenElseZero(some, hn::NegMulAdd(block, set(kLogBlock), scale));
      Block<D, 1> power{{hn::Neg(hn::Abs(rest))}};
      exp_nonpositive(tag, power);
      factor = hn::IfThenElse(hn::Gt(rest, zero()), hn::Div(set(1.0), power[0]), power[0]);
    }
    HWY_INLINE Wide times(V x) const {
      const Wide number = normal({x, block});
      return normal({hn::Mul(number.x, factor), number.block});
    }
  };

  static constexpr double kLowered = 0x1p-128;  // numbers whose peak is below this move to the next block together

  /// The block of all entries of a run before a step, and the factor that brings them into it.
  struct Level {
    V block, raised;
    HWY_INLINE Level(const LaneArray& array, double lowest) {
      const M low = hn::Lt(load(array.peak), set(lowest));
      block = hn::Sub(load(array.block), hn::IfThenElseZero(low, set(1.0)));
      raised = hn::IfThenElse(low, set(kBlock), set(1.0));
    }
  };

  /// Stores one block per entry where all had the same: `now` for those below `from`, which a step has moved, and the
  /// former one for others.
  static HWY_NOINLINE void part_blocks(LaneArray& array, Index from, V now) {
    const Index L = width(), end = array.rows * array.cols * L;
    const V before = load(array.block);
    for (Index k = 0; k < end; k += L) store(k < from ? now : before, array.block + k);
    array.uniform = false;
  }

  static void make_uniform(LaneArray& array, bool uniform) {
    array.uniform = uniform;
    store(set(1.0), array.peak);  // not known, and found in the next step
  }

  /// Takes the descent directions into the averages and calls use(offset, b1·m + (1−b1)·descent) for every entry.
  template <class Use>
  static HWY_INLINE void average(const LaneStep& step, LaneArray& array, Use use) {
    const Index L = width(), end = array.rows * array.cols * L;
    const Scale scale(step);
    const V b1 = set(step.rule.betas[0]), b2 = set(step.rule.betas[1]);
    const V rest1 = set(1 - step.rule.betas[0]), rest2 = set(1 - step.rule.betas[1]);
    const bool once = step.rule.betas[0] == step.rule.betas[1];
    Index begin = 0;
    if (array.uniform) {
      const Level level(array, kLowered);
      const Shared common(level.block, scale.block);
      const V first = hn::Mul(level.raised, common.first), past1 = hn::Mul(b1, first), past2 = hn::Mul(b2, first);
      V peak = zero();
      const V now1 = hn::Mul(rest1, common.second), now2 = hn::Mul(rest2, common.second);
      for (; begin < end; begin += L) {
        const V past = load(array.mean + begin), now = hn::Mul(load(array.descent + begin), scale.factor);
        const V used = hn::MulAdd(past1, past, hn::Mul(now1, now));
        const V kept = once ? used : hn::MulAdd(past2, past, hn::Mul(now2, now));
        const V least = hn::Min(hn::Abs(now), hn::Min(hn::Abs(used), hn::Abs(kept)));
        if (HWY_UNLIKELY(!hn::AllTrue(tag, hn::Ge(least, set(kLeast))))) break;
        peak = hn::Max(peak, hn::Abs(kept));
        store(kept, array.mean + begin);
        use(begin, Wide{used, common.block});
      }
      if (begin == end) {
        store(peak, array.peak);
        return store(common.block, array.block);
      }
      part_blocks(array, begin, common.block);
    }
    M same = hn::Eq(zero(), zero());
    for (Index k = begin; k < end; k += L) {
      const V past = load(array.mean + k), block = load(array.block + k), descent = load(array.descent + k);
      const V now = hn::Mul(descent, scale.factor);
      if (HWY_LIKELY(all_normal(past, now))) {
        const Shared common(block, scale.block);
        const V m = hn::Mul(past, common.first), g = hn::Mul(now, common.second);
        const V used = hn::MulAdd(b1, m, hn::Mul(rest1, g));
        const V kept = once ? used : hn::MulAdd(b2, m, hn::Mul(rest2, g));
        if (HWY_LIKELY(all_normal(used, kept))) {
          store(kept, array.mean + k);
          store(common.block, array.block + k);
          same = hn::And(same, hn::Eq(common.block, load(array.block)));
          use(k, Wide{used, common.block});
          continue;
        }
      }
      const Wide wide = scale.times(descent);
      const V shared = common_block(wide, {past, block});
      const V g = in_block(wide.x, wide.block, shared), m = in_block(past, block, shared);
      const Wide memory = normal({hn::MulAdd(b2, m, hn::Mul(rest2, g)), shared});
      store(memory.x, array.mean + k);
      store(memory.block, array.block + k);
      same = hn::And(same, hn::And(hn::Eq(memory.block, load(array.block)), hn::Ne(memory.x, zero())));
      use(k, normal({hn::MulAdd(b1, m, hn::Mul(rest1, g)), shared}));
    }
    make_uniform(array, begin == 0 && hn::AllTrue(tag, same));
  }

  /// theta + along − size·decay·theta
  static HWY_INLINE V moved(const LaneStep& step, V theta, V along) {
    return hn::NegMulAdd(set(step.size * step.rule.weight_decay), theta, hn::Add(theta, along));
  }

  struct AdamNumbers {
    V first, second, past1, past2, rest1, rest2;
    AdamNumbers(const LaneStep& step) {  // NOLINT: made where it is used
      const auto [b1, b2] = step.rule.betas;
      const double t = static_cast<double>(step.number + 1);
      first = set(step.size / (1 - std::pow(b1, t)));
      second = set(1 / (1 - std::pow(b2, t)));
      past1 = set(b1);
      past2 = set(b2);
      rest1 = set(1 - b1);
      rest2 = set(1 - b2);
    }
    /// Moves entries by size·m̂/(√ŝ + ε); 0/0 is 0.
    template <int kCount>
    HWY_INLINE void move(const LaneStep& step, const Block<D, kCount>& m, Block<D, kCount> s, V epsilon,
                         double* theta) const {
      const Index L = width();
      each<kCount>([&](auto i) ATTSVM_INLINED { s[i] = hn::Mul(s[i], second); });
      invert_roots(tag, s);
      each<kCount>([&](auto i) ATTSVM_INLINED {
        V along = hn::Mul(hn::Mul(m[i], first), s[i]);
        if (step.rule.epsilon > 0) along = hn::Div(along, hn::MulAdd(epsilon, s[i], set(1.0)));
        store(moved(step, load(theta + i * L), along), theta + i * L);
      });
    }
  };

  /// What a step of Adam multiplies by where all entries of a run have one block.
  struct UniformAdam {
    V block, factor, second, past1, past2, rest1, epsilon;
    UniformAdam(const LaneStep& step, const AdamNumbers& n, const Scale& scale, const LaneArray& array) {
      const Level level(array, kLowered * kLowered);
      const Shared common(level.block, scale.block);
      const V first = hn::Mul(level.raised, common.first);
      block = common.block;
      factor = scale.factor;
      second = common.second;
      past1 = hn::Mul(n.past1, first);
      past2 = hn::Mul(hn::Mul(n.past2, first), first);
      rest1 = hn::Mul(n.rest1, second);
      epsilon = in_units_of(step.rule.epsilon, block);
    }
  };

  /// The steps of kCount entries from `k` on, if all numbers of a run have one block; false if a number is too small.
  template <int kCount>
  static HWY_INLINE bool adam_block(const LaneStep& step, const AdamNumbers& n, const UniformAdam& one,
                                    LaneArray& array, Index k, V& peak) {
    const Index L = width();
    Block<D, kCount> m, s;
    V least = set(kLeast), least_square = set(kLeast * kLeast);
    each<kCount>([&](auto i) ATTSVM_INLINED {
      const Index at = k + i * L;
      const V now = hn::Mul(load(array.descent + at), one.factor), g = hn::Mul(now, one.second);
      m[i] = hn::MulAdd(one.past1, load(array.mean + at), hn::Mul(one.rest1, now));
      s[i] = hn::MulAdd(one.past2, load(array.square + at), hn::Mul(hn::Mul(n.rest2, g), g));
      least = hn::Min(least, hn::Abs(now));
      least_square = hn::Min(least_square, s[i]);
    });
    const M usual = hn::And(hn::Ge(least, set(kLeast)), hn::Ge(least_square, set(kLeast * kLeast)));
    if (HWY_UNLIKELY(!hn::AllTrue(tag, usual))) return false;
    each<kCount>([&](auto i) ATTSVM_INLINED {
      peak = hn::Max(peak, s[i]);
      store(m[i], array.mean + k + i * L);
      store(s[i], array.square + k + i * L);
    });
    n.move(step, m, s, one.epsilon, array.theta + k);
    return true;
  }

  static void adam(const LaneStep& step, LaneArray& array) {
    const Index L = width(), end = array.rows * array.cols * L;
    const AdamNumbers n(step);
    const Scale scale(step);
    Index begin = 0;
    if (array.uniform) {
      const UniformAdam one(step, n, scale, array);
      V peak = zero();
      while (begin + 4 * L <= end && adam_block<4>(step, n, one, array, begin, peak)) begin += 4 * L;
      while (begin < end && adam_block<1>(step, n, one, array, begin, peak)) begin += L;
      if (begin == end) {
        store(peak, array.peak);
        return store(one.block, array.block);
      }
      part_blocks(array, begin, one.block);
    }
    M same = hn::Eq(zero(), zero());
    for (Index k = begin; k < end; k += L) {
      const V past_m = load(array.mean + k), past_s = load(array.square + k), past_block = load(array.block + k);
      const Wide wide = scale.times(load(array.descent + k));
      V block = common_block(wide, {hn::Max(past_s, hn::Abs(past_m)), past_block});
      const V g = in_block(wide.x, wide.block, block);
      V m = hn::MulAdd(n.past1, in_block(past_m, past_block, block), hn::Mul(n.rest1, g));
      V s = hn::MulAdd(n.past2, in_block(in_block(past_s, past_block, block), past_block, block),
                       hn::Mul(hn::Mul(n.rest2, g), g));
      for (int round = 0; round < 3; ++round) {
        const M high = hn::Ge(s, set(kHighest * kHighest));
        const M low = hn::And(hn::Lt(s, set(kLowest * kLowest)), hn::Gt(s, zero()));
        const V change = hn::IfThenElse(high, set(kBlockInverse), hn::IfThenElse(low, set(kBlock), set(1.0)));
        m = hn::Mul(m, change);
        s = hn::Mul(hn::Mul(s, change), change);
        block = hn::Add(block, hn::IfThenElse(high, set(1.0), hn::IfThenElseZero(low, set(-1.0))));
      }
      store(block, array.block + k);
      store(m, array.mean + k);
      store(s, array.square + k);
      same = hn::And(same, hn::And(hn::Eq(block, load(array.block)), hn::Gt(s, zero())));
      n.template move<1>(step, {{m}}, {{s}}, in_units_of(step.rule.epsilon, block), array.theta + k);
    }
    make_uniform(array, begin == 0 && hn::AllTrue(tag, same));
  }

  static HWY_INLINE void move_by_sign(const LaneStep& step, LaneArray& array, Index k, V direction) {
    const V along = hn::IfThenElseZero(hn::Ne(direction, zero()), hn::CopySign(set(step.size), direction));
    store(moved(step, load(array.theta + k), along), array.theta + k);
  }

  static void signs(const LaneStep& step, LaneArray& array) {
    const Index L = width(), end = array.rows * array.cols * L;
    if (step.rule.averages()) {
      average(step, array, [&](Index k, Wide used) ATTSVM_INLINED { move_by_sign(step, array, k, used.x); });
      return;
    }
    for (Index k = 0; k < end; k += L) move_by_sign(step, array, k, load(array.descent + k));
  }

  /// Writes the averaged directions of all entries to `mixed`, in units of a block that they share. Returns the block.
  static V mix(const LaneStep& step, LaneArray& array) {
    const Index L = width(), end = array.rows * array.cols * L;
    V top = set(-1e300), bottom = set(1e300);
    average(step, array, [&](Index k, Wide used) ATTSVM_INLINED {
      const M some = hn::Ne(used.x, zero());
      top = hn::Max(top, hn::IfThenElse(some, used.block, top));
      bottom = hn::Min(bottom, hn::IfThenElse(some, used.block, bottom));
      store(used.x, array.mixed + k);
      store(used.block, array.mixed_block + k);
    });
    top = hn::IfThenElseZero(hn::Gt(top, set(-1e299)), top);
    if (!hn::AllTrue(tag, hn::Ge(bottom, top))) {
      for (Index k = 0; k < end; k += L) {
        store(in_block(load(array.mixed + k), load(array.mixed_block + k), top), array.mixed + k);
      }
    }
    return top;
  }

  /// gd and ngd with momentum.
  static void scaled(const LaneStep& step, LaneArray& array) {
    const Index L = width(), end = array.rows * array.cols * L;
    const V block = mix(step, array), size = set(step.size);
    V factor = size;
    if (step.rule.kind == StepKind::scaled) {
      factor = hn::Mul(size, in_units_of(1, hn::Neg(block)));
    } else {
      V even = zero(), odd = zero();
      Index k = 0;
      for (; k + 2 * L <= end; k += 2 * L) {
        even = hn::MulAdd(load(array.mixed + k), load(array.mixed + k), even);
        odd = hn::MulAdd(load(array.mixed + k + L), load(array.mixed + k + L), odd);
      }
      if (k < end) even = hn::MulAdd(load(array.mixed + k), load(array.mixed + k), even);
      const V square = hn::Add(even, odd);
      const V length = hn::Add(hn::Sqrt(square), in_units_of(step.rule.epsilon, block));
      factor = hn::IfThenElseZero(hn::Gt(square, zero()), hn::Div(size, length));
    }
    for (Index k = 0; k < end; k += L) {
      store(moved(step, load(array.theta + k), hn::Mul(factor, load(array.mixed + k))), array.theta + k);
    }
  }

  static void take(const LaneStep& step, LaneArray& array) {
    if (step.rule.kind == StepKind::adam) return adam(step, array);
    if (step.rule.norm == Norm::spectral()) {
      mix(step, array);
      return;
    }
    if (step.rule.kind == StepKind::scaled || step.rule.norm.is_frobenius()) return scaled(step, array);
    signs(step, array);
  }
};

void step_full(const LaneStep& step, LaneArray& array) { Steps<hn::ScalableTag<double>>::take(step, array); }
void step_one(const LaneStep& step, LaneArray& array) { Steps<hn::CappedTag<double, 1>>::take(step, array); }

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {

HWY_EXPORT(step_full);
HWY_EXPORT(step_one);

bool lanes_can_step(const StepRule& rule) {
  switch (rule.kind) {
    case StepKind::scaled:
      return rule.averages();
    case StepKind::adam:
      // |m| ≤ c·√s with a constant c only then; without ε, steps might be of any length otherwise.
      return rule.betas[0] * rule.betas[0] < rule.betas[1];
    case StepKind::steepest:
      return rule.norm.is_frobenius() ? rule.averages() : rule.epsilon == 0 && rule.norm.power == Norm::largest().power;
    default:
      return false;
  }
}

void part_uniform(Index lanes, LaneArray& array) {
  for (Index k = lanes; k < array.rows * array.cols * lanes && array.uniform; ++k)
    array.block[k] = array.block[k - lanes];
  array.uniform = false;
}

void lane_step(const LaneStep& step, Index lanes, LaneArray& array) {
  const bool polar = step.rule.kind == StepKind::steepest && step.rule.norm == Norm::spectral();
  if (polar && !step.rule.averages()) {
    return lane_polar_step(step, lanes, array.descent, array);
  }
  if (lanes == 1) {
    HWY_DYNAMIC_DISPATCH(step_one)(step, array);
  } else {
    HWY_DYNAMIC_DISPATCH(step_full)(step, array);
  }
  if (polar) lane_polar_step(step, lanes, array.mixed, array);
}

}  // namespace attsvm::internal
#endif  // HWY_ONCE
