// Steps along U Vᵀ in vector lanes, by one-sided Jacobi rotations: they find small singular values and their vectors
// with the accuracy that the entries have.
#include "train/lane_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/lane_polar.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "base/kernels/lanes-inl.h"
#include "train/directions.h"
#include "train/lane_roots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {

/// Works on columns of `tall` + `small` numbers: a column of A V, and below it that of V, which is orthogonal.
template <class D>
struct Polar {
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  static constexpr D tag{};
  static HWY_INLINE Index width() { return static_cast<Index>(hn::Lanes(tag)); }
  static HWY_INLINE V load(const double* at) { return hn::Load(tag, at); }
  static HWY_INLINE void store(V v, double* at) { hn::Store(v, tag, at); }
  static HWY_INLINE V set(double x) { return hn::Set(tag, x); }
  static HWY_INLINE V zero() { return hn::Zero(tag); }

  static constexpr double kOrthogonal = 0x1p-48;  // columns whose cosine is below this are orthogonal
  // A sweep leaves cosines of the size of its largest cosine times its largest turn. It is the last if all cosines are
  // below the first number, and the turns of all that are not mere rounding below the second.
  static constexpr double kNearlyOrthogonal = 1e-8, kSmallTurn = 0x1p-20, kRounding = 0x1p-46;
  static constexpr double kNothing = 0x1p-106;  // a column whose square is this share of the largest is rounding error
  static constexpr int kMostSweeps = 40;
  static constexpr Index kMostColumns = kMostPolarColumns;

  struct Columns {
    double* numbers;
    Index tall, small;
    HWY_INLINE double* at(Index p) const { return numbers + p * (tall + small) * width(); }
  };

  /// Writes A V, with A divided by its largest entry, for the V that is there, or V = 1.
  static void fill(const double* source, bool flip, bool afresh, const Columns& columns) {
    const Index L = width(), tall = columns.tall, small = columns.small;
    V peak = zero();
    for (Index k = 0; k < tall * small * L; k += L) peak = hn::Max(peak, hn::Abs(load(source + k)));
    const V inverse = hn::IfThenElseZero(hn::Gt(peak, zero()), hn::Div(set(1.0), peak));
    const auto entry = [&](Index i, Index j)
                           ATTSVM_INLINED { return load(source + (flip ? j * tall + i : i * small + j) * L); };
    for (Index p = 0; p < small; ++p) {
      double *column = columns.at(p), *turned = column + tall * L;
      for (Index i = 0; i < small && afresh; ++i) store(set(i == p ? 1 : 0), turned + i * L);
      in_blocks(tall, [&](auto size, Index i) ATTSVM_INLINED {
        constexpr int kRows = size;
        Block<D, kRows> sum;
        each<kRows>([&](auto k) ATTSVM_INLINED { sum[k] = hn::Mul(entry(i + k, 0), load(turned)); });
        for (Index j = 1; j < small; ++j) {
          const V factor = load(turned + j * L);
          each<kRows>([&](auto k) ATTSVM_INLINED { sum[k] = hn::MulAdd(entry(i + k, j), factor, sum[k]); });
        }
        each<kRows>([&](auto k) ATTSVM_INLINED { store(hn::Mul(sum[k], inverse), column + (i + k) * L); });
      });
    }
  }

  static HWY_INLINE V square(const double* a, Index size) {
    const Index L = width();
    V even = zero(), odd = zero();
    Index k = 0;
    for (; k + 2 * L <= size * L; k += 2 * L) {
      even = hn::MulAdd(load(a + k), load(a + k), even);
      odd = hn::MulAdd(load(a + k + L), load(a + k + L), odd);
    }
    if (k < size * L) even = hn::MulAdd(load(a + k), load(a + k), even);
    return hn::Add(even, odd);
  }

  /// Makes kPairs pairs of columns orthogonal in the lanes that are `active`; pair(i) gives the two. No column is in
  /// two pairs, and their latencies overlap. Adds the lanes where columns were far from orthogonal to `again`.
  template <int kPairs, class Pair>
  static HWY_INLINE void rotate(const Columns& columns, Pair pair, V nothing, M active, M& again) {
    const Index L = width(), end = columns.tall * L;
    Block<D, kPairs> ab, difference, inverse, square, root;
    M turns[static_cast<std::size_t>(kPairs)], notable[static_cast<std::size_t>(kPairs)];
    bool any = false;
    each<kPairs>([&](auto i) ATTSVM_INLINED {
      const auto [a, b] = pair(i);
      V xx = zero(), xy = zero(), yy = zero();
      for (Index k = 0; k < end; k += L) {
        const V x = load(a + k), y = load(b + k);
        xx = hn::MulAdd(x, x, xx);
        xy = hn::MulAdd(x, y, xy);
        yy = hn::MulAdd(y, y, yy);
      }
      const V cosine = hn::Mul(xy, xy), product = hn::Mul(xx, yy);
      const M counts = hn::And(active, hn::Gt(hn::Min(xx, yy), nothing));
      turns[i] = hn::And(counts, hn::Gt(cosine, hn::Mul(product, set(kOrthogonal * kOrthogonal))));
      notable[i] = hn::And(counts, hn::Gt(cosine, hn::Mul(product, set(kRounding * kRounding))));
      const V far = hn::Mul(product, set(kNearlyOrthogonal * kNearlyOrthogonal));
      again = hn::Or(again, hn::And(counts, hn::Gt(cosine, far)));
      any = any || !hn::AllFalse(tag, turns[i]);
      ab[i] = xy;
      difference[i] = hn::Sub(xx, yy);
    });
    if (!any) return;
    // tan 2φ = 2 a·b/(|a|² − |b|²), with |φ| ≤ π/4: cos² φ = (1 + |difference|/hypotenuse)/2.
    each<kPairs>([&](auto i) ATTSVM_INLINED {
      const V twice = hn::Add(ab[i], ab[i]);
      inverse[i] = hn::MulAdd(difference[i], difference[i], hn::Mul(twice, twice));
    });
    invert_roots(tag, inverse);
    each<kPairs>([&](auto i) ATTSVM_INLINED {
      square[i] = root[i] = hn::MulAdd(hn::Mul(set(0.5), hn::Abs(difference[i])), inverse[i], set(0.5));
    });
    invert_roots(tag, root);
    each<kPairs>([&](auto i) ATTSVM_INLINED {
      if (hn::AllFalse(tag, turns[i])) return;
      const auto [a, b] = pair(i);
      const V sine = hn::Mul(hn::Mul(ab[i], inverse[i]), root[i]);
      const V c = hn::IfThenElse(turns[i], hn::Mul(square[i], root[i]), set(1.0));
      const V s = hn::IfThenElseZero(turns[i], hn::IfThenElse(hn::Ge(difference[i], zero()), sine, hn::Neg(sine)));
      again = hn::Or(again, hn::And(notable[i], hn::Gt(hn::Abs(s), set(kSmallTurn))));
      for (Index k = 0; k < end + columns.small * L; k += L) {
        const V x = load(a + k), y = load(b + k);
        store(hn::MulAdd(c, x, hn::Mul(s, y)), a + k);
        store(hn::NegMulAdd(s, x, hn::Mul(c, y)), b + k);
      }
    });
  }

  /// One round of a tournament: every column is in one pair, except one column if their number is odd. Columns of
  /// nothing do not play: no pair with them would be turned.
  static HWY_INLINE void play(const Columns& columns, const bool* plays, Index round, V nothing, M active, M& again) {
    const Index small = columns.small, seats = small + small % 2;
    const auto player = [&](Index seat) {
      const Index at = seat + round;
      return seat == 0 ? 0 : at < seats ? at : at - (seats - 1);
    };
    std::pair<double*, double*> pairs[kMostColumns / 2];
    Index count = 0;
    for (Index seat = 0; seat < seats / 2; ++seat) {
      const Index one = player(seat), other = player(seats - 1 - seat);
      const Index p = std::min(one, other), q = std::max(one, other);
      if (q < small && plays[p] && plays[q]) pairs[count++] = {columns.at(p), columns.at(q)};  // q = small: no player
    }
    in_blocks(count, [&](auto size, Index first) ATTSVM_INLINED {
      rotate<size>(
          columns, [&](int i) ATTSVM_INLINED { return pairs[first + i]; }, nothing, active, again);
    });
  }

  static void take(const LaneStep& step, const double* source, LaneArray& array) {
    const double size = step.size, decay = step.rule.weight_decay;
    const Index L = width();
    const bool flip = array.cols > array.rows;
    const Columns columns{array.columns, std::max(array.rows, array.cols), std::min(array.rows, array.cols)};
    const Index small = columns.small, tall = columns.tall;
    // The V of the step before is nearly right. Now and then it begins anew, before it stops being orthogonal.
    constexpr Index kKept = 64;
    fill(source, flip, step.number % kKept == 0, columns);
    V all = zero();
    for (Index p = 0; p < small; ++p) all = hn::Add(all, square(columns.at(p), tall));
    const V nothing = hn::Mul(all, set(kNothing));
    bool plays[kMostColumns];
    for (Index p = 0; p < small; ++p)
      plays[p] = !hn::AllFalse(tag, hn::Gt(square(columns.at(p), tall), hn::Mul(set(0.5), nothing)));
    const Index seats = small + small % 2;
    M active = hn::Eq(zero(), zero());
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      M again = hn::Lt(zero(), zero());
      for (Index round = 0; round + 1 < seats; ++round) play(columns, plays, round, nothing, active, again);
      if (hn::AllFalse(tag, again)) break;
      active = again;
    }
    V top = zero();
    for (Index p = 0; p < small; ++p) top = hn::Max(top, square(columns.at(p), tall));
    const V least = hn::Mul(top, set(kRankTolerance * kRankTolerance));
    for (Index p = 0; p < small; ++p) {
      double* column = columns.at(p);
      const V sigma2 = square(column, tall);
      Block<D, 1> inverse{{sigma2}};
      invert_roots(tag, inverse);
      const V factor = hn::IfThenElseZero(hn::Gt(sigma2, least), hn::Mul(set(size), inverse[0]));
      for (Index k = 0; k < tall * L; k += L) store(hn::Mul(load(column + k), factor), column + k);
    }
    const V keep = set(1 - size * decay);
    for (Index i = 0; i < tall; ++i) {
      in_blocks(small, [&](auto count, Index j) ATTSVM_INLINED {
        constexpr int kCount = count;
        Block<D, kCount> sum;
        const auto theta = [&](int k) { return array.theta + (flip ? (j + k) * tall + i : i * small + j + k) * L; };
        each<kCount>([&](auto k) ATTSVM_INLINED { sum[k] = hn::Mul(keep, load(theta(k))); });
        for (Index p = 0; p < small; ++p) {
          const double* column = columns.at(p);
          const V factor = load(column + i * L);
          each<kCount>([&](auto k)
                           ATTSVM_INLINED { sum[k] = hn::MulAdd(factor, load(column + (tall + j + k) * L), sum[k]); });
        }
        each<kCount>([&](auto k) ATTSVM_INLINED { store(sum[k], theta(k)); });
      });
    }
  }
};

void polar_full(const LaneStep& step, const double* source, LaneArray& array) {
  Polar<hn::ScalableTag<double>>::take(step, source, array);
}
void polar_one(const LaneStep& step, const double* source, LaneArray& array) {
  Polar<hn::CappedTag<double, 1>>::take(step, source, array);
}

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {

HWY_EXPORT(polar_full);
HWY_EXPORT(polar_one);

void lane_polar_step(const LaneStep& step, Index lanes, const double* source, LaneArray& array) {
  if (lanes == 1) {
    HWY_DYNAMIC_DISPATCH(polar_one)(step, source, array);
  } else {
    HWY_DYNAMIC_DISPATCH(polar_full)(step, source, array);
  }
}

}  // namespace attsvm::internal
#endif  // HWY_ONCE
