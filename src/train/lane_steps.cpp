#include "train/lane_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/lane_steps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "base/kernels/lanes-inl.h"
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
  static HWY_INLINE M in_range(V size, double lowest, double highest) {
    return hn::And(hn::Ge(size, set(lowest)), hn::Lt(size, set(highest)));
  }

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

  static HWY_INLINE V in_block(V x, V block, V other) {
    const V apart = hn::Sub(other, block);
    const V once = hn::Mul(x, set(kBlockInverse)), twice = hn::Mul(once, set(kBlockInverse));
    const V far = hn::IfThenElse(hn::Eq(apart, set(1.0)), once, hn::IfThenElseZero(hn::Eq(apart, set(2.0)), twice));
    return hn::IfThenElse(hn::Eq(apart, zero()), x, far);
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

  /// Takes the descent directions into the averages and calls use(offset, b1·m + (1−b1)·descent) for every entry.
  template <class Use>
  static HWY_INLINE void average(const LaneStep& step, LaneArray& array, Use use) {
    const Index L = width(), end = array.rows * array.cols * L;
    const Scale scale(step);
    const V b1 = set(step.rule.betas[0]), b2 = set(step.rule.betas[1]);
    const V rest1 = set(1 - step.rule.betas[0]), rest2 = set(1 - step.rule.betas[1]);
    for (Index k = 0; k < end; k += L) {
      const V past = load(array.mean + k), block = load(array.block + k), descent = load(array.descent + k);
      const V now = hn::Mul(descent, scale.factor);
      const V used = hn::MulAdd(b1, past, hn::Mul(rest1, now)), kept = hn::MulAdd(b2, past, hn::Mul(rest2, now));
      const M usual = hn::And(hn::Eq(block, scale.block), hn::And(in_range(hn::Abs(used), kLowest, kHighest),
                                                                  in_range(hn::Abs(kept), kLowest, kHighest)));
      if (HWY_LIKELY(hn::AllTrue(tag, usual))) {
        store(kept, array.mean + k);
        use(k, Wide{used, block});
        continue;
      }
      const Wide wide = scale.times(descent);
      const V shared = common_block(wide, {past, block});
      const V g = in_block(wide.x, wide.block, shared), m = in_block(past, block, shared);
      const Wide memory = normal({hn::MulAdd(b2, m, hn::Mul(rest2, g)), shared});
      store(memory.x, array.mean + k);
      store(memory.block, array.block + k);
      use(k, normal({hn::MulAdd(b1, m, hn::Mul(rest1, g)), shared}));
    }
  }

  /// theta + along − size·decay·theta
  static HWY_INLINE V moved(const LaneStep& step, V theta, V along) {
    return hn::NegMulAdd(set(step.size * step.rule.weight_decay), theta, hn::Add(theta, along));
  }

  static void adam(const LaneStep& step, LaneArray& array) {
    const Index L = width(), end = array.rows * array.cols * L;
    const auto [b1, b2] = step.rule.betas;
    const double t = static_cast<double>(step.number + 1);
    const V first = set(1 / (1 - std::pow(b1, t))), second = set(1 / (1 - std::pow(b2, t)));
    const Scale scale(step);
    const V usual_epsilon = in_units_of(step.rule.epsilon, scale.block), size = set(step.size);
    const V past1 = set(b1), past2 = set(b2), rest1 = set(1 - b1), rest2 = set(1 - b2);
    for (Index k = 0; k < end; k += L) {
      V m = load(array.mean + k), s = load(array.square + k), block = load(array.block + k), epsilon = usual_epsilon;
      const V descent = load(array.descent + k), now = hn::Mul(descent, scale.factor);
      V m_next = hn::MulAdd(past1, m, hn::Mul(rest1, now));
      V s_next = hn::MulAdd(past2, s, hn::Mul(hn::Mul(rest2, now), now));
      const M usual = hn::And(hn::Eq(block, scale.block), in_range(s_next, kLowest * kLowest, kHighest * kHighest));
      if (HWY_UNLIKELY(!hn::AllTrue(tag, usual))) {
        const Wide wide = scale.times(descent);
        const V shared = common_block(wide, {hn::Max(s, hn::Abs(m)), block});
        const V g = in_block(wide.x, wide.block, shared);
        m = in_block(m, block, shared);
        s = in_block(in_block(s, block, shared), block, shared);
        m_next = hn::MulAdd(past1, m, hn::Mul(rest1, g));
        s_next = hn::MulAdd(past2, s, hn::Mul(hn::Mul(rest2, g), g));
        block = shared;
        for (int round = 0; round < 3; ++round) {
          const M high = hn::Ge(s_next, set(kHighest * kHighest));
          const M low = hn::And(hn::Lt(s_next, set(kLowest * kLowest)), hn::Gt(s_next, zero()));
          const V change = hn::IfThenElse(high, set(kBlockInverse), hn::IfThenElse(low, set(kBlock), set(1.0)));
          m_next = hn::Mul(m_next, change);
          s_next = hn::Mul(hn::Mul(s_next, change), change);
          block = hn::Add(block, hn::IfThenElse(high, set(1.0), hn::IfThenElseZero(low, set(-1.0))));
        }
        epsilon = in_units_of(step.rule.epsilon, block);
        store(block, array.block + k);
      }
      store(m_next, array.mean + k);
      store(s_next, array.square + k);
      const V root = hn::Add(hn::Sqrt(hn::Mul(s_next, second)), epsilon);
      const V along = hn::IfThenElseZero(hn::Ne(m_next, zero()), hn::Div(hn::Mul(hn::Mul(m_next, first), size), root));
      store(moved(step, load(array.theta + k), along), array.theta + k);
    }
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
      return (rule.norm.is_frobenius() && rule.averages()) || (rule.norm == Norm::largest() && rule.epsilon == 0);
    default:
      return false;
  }
}

void lane_step(const LaneStep& step, Index lanes, LaneArray& array) {
  if (lanes == 1) {
    HWY_DYNAMIC_DISPATCH(step_one)(step, array);
  } else {
    HWY_DYNAMIC_DISPATCH(step_full)(step, array);
  }
}

}  // namespace attsvm::internal
#endif  // HWY_ONCE
