#pragma once

#include "device/lane.h"

// Steps of optimizers that move the entries of an array one by one, in the order of operations of lane_steps.cpp.

namespace attsvm::internal::device {

enum EntryWay : int { kSigns, kAdam };

/// What all entries of all runs of a launch share.
struct EntryRule {
  int way;              ///< an EntryWay
  int averages;         ///< signs of averaged gradients
  double past1, past2;  ///< the weights b1 and b2 of StepRule
  double epsilon, decay, log_queries;
};

ATTSVM_LANE bool remembers(const EntryRule& rule) { return rule.way == kAdam || rule.averages != 0; }

/// A step: its size, and the same divided by 1 − b1^t, and 1/(1 − b2^t), with t the steps taken, this one too.
struct StepSize {
  double size, first, second;
};

// Wide numbers, as in wide_numbers.h: x·2^{512·block}.
constexpr double kWideBlock = 0x1p512, kWideInverse = 0x1p-512, kWideHighest = 0x1p256, kWideLowest = 0x1p-256;
constexpr double kLogWideBlock = 354.89135644669199842;

struct Wide {
  double x, block;
};

ATTSVM_LANE Wide normal(Wide number) {
  for (int round = 0; round < 3; ++round) {
    const double size = fabs(number.x);
    if (size >= kWideHighest) {
      number = {number.x * kWideInverse, number.block + 1};
    } else if (size < kWideLowest && size > 0) {
      number = {number.x * kWideBlock, number.block - 1};
    }
  }
  return number;
}

ATTSVM_LANE double in_block(double x, double block, double other) {
  return block == other ? x : other - block == 1 ? x * kWideInverse : 0.0;
}

ATTSVM_LANE double in_units_of(double number, double block) {
  for (int k = 0; k < 3; ++k) {
    if (block + k < 0) number *= kWideBlock;
    if (block - k > 0) number *= kWideInverse;
  }
  return number;
}

ATTSVM_LANE double common_block(const Wide& a, const Wide& b) {
  return a.x == 0 ? b.block : b.x == 0 ? a.block : a.block > b.block ? a.block : b.block;
}

/// 1/√x as invert_roots (lane_roots-inl.h) finds it.
ATTSVM_LANE double inverse_root(double x) {
  double y = number_of(0x5FE6EB50C7B537A9ULL - (bits_of(x) >> 1));
  x *= 0.5;
  for (int round = 0; round < 4; ++round) y *= fma(-(x * y), y, 1.5);
  return y;
}

/// The factor e^{top}/n of a run's gradient.
class GradientScale {
 public:
  ATTSVM_LANE GradientScale(const EntryRule& rule, double top) {
    const double scale = top - rule.log_queries;
    if (!(scale > -1e299)) return;  // the gradient is zero
    block_ = rint(scale * (1 / kLogWideBlock));
    const double rest = fma(-block_, kLogWideBlock, scale), power = exp_below(-fabs(rest));
    factor_ = rest > 0 ? 1.0 / power : power;
  }
  ATTSVM_LANE Wide times(double x) const {
    const Wide number = normal({x, block_});
    return normal({number.x * factor_, number.block});
  }

 private:
  double factor_ = 1, block_ = 0;
};

/// One entry of an array, and what the optimizer remembers of it.
struct Entry {
  double theta, mean, square, block;
};

ATTSVM_LANE double moved(const EntryRule& rule, double size, double theta, double along) {
  return fma(-(size * rule.decay), theta, theta + along);
}

ATTSVM_LANE void adam_step(const EntryRule& rule, const StepSize& step, const Wide& gradient, Entry& at) {
  const double most = fabs(at.mean) > at.square ? fabs(at.mean) : at.square;
  double block = common_block(gradient, {most, at.block});
  const double g = in_block(gradient.x, gradient.block, block);
  double m = fma(rule.past1, in_block(at.mean, at.block, block), (1 - rule.past1) * g);
  double s =
      fma(rule.past2, in_block(in_block(at.square, at.block, block), at.block, block), ((1 - rule.past2) * g) * g);
  for (int round = 0; round < 3; ++round) {
    const bool high = s >= kWideHighest * kWideHighest, low = s < kWideLowest * kWideLowest && s > 0;
    const double change = high ? kWideInverse : low ? kWideBlock : 1.0;
    m *= change;
    s = s * change * change;
    block += high ? 1.0 : low ? -1.0 : 0.0;
  }
  at.block = block;
  at.mean = m;
  at.square = s;
  const double inverse = inverse_root(s * step.second);
  double along = m * step.first * inverse;
  if (rule.epsilon > 0) along /= fma(in_units_of(rule.epsilon, block), inverse, 1.0);
  at.theta = moved(rule, step.size, at.theta, along);
}

ATTSVM_LANE void sign_step(const EntryRule& rule, const StepSize& step, const Wide& gradient, double descent,
                           Entry& at) {
  double used = descent;
  if (rule.averages != 0) {
    const double shared = common_block(gradient, {at.mean, at.block});
    const double g = in_block(gradient.x, gradient.block, shared), m = in_block(at.mean, at.block, shared);
    used = fma(rule.past1, m, (1 - rule.past1) * g);
    const Wide memory = normal({fma(rule.past2, m, (1 - rule.past2) * g), shared});
    at.mean = memory.x;
    at.block = memory.block;
  }
  at.theta = moved(rule, step.size, at.theta, used != 0 ? copysign(step.size, used) : 0.0);
}

/// Moves an entry whose gradient is −descent·e^{top}/n.
ATTSVM_LANE void entry_step(const EntryRule& rule, const StepSize& step, const GradientScale& scale, double descent,
                            Entry& at) {
  if (rule.way == kAdam) return adam_step(rule, step, scale.times(descent), at);
  sign_step(rule, step, rule.averages != 0 ? scale.times(descent) : Wide{0, 0}, descent, at);
}

}  // namespace attsvm::internal::device
