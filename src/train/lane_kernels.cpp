#include "train/lane_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/lane_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {

constexpr double kNone = -1e300;  // stands for the logarithm of zero; finite, so that differences are finite

/// The loops for vectors of one width. Lanes do not interact, and sums run in a fixed order.
template <class D>
struct Lanes {
  using V = hn::Vec<D>;
  static constexpr D tag{};
  static HWY_INLINE Index width() { return static_cast<Index>(hn::Lanes(tag)); }
  static HWY_INLINE V load(const double* at) { return hn::Load(tag, at); }
  static HWY_INLINE void store(V v, double* at) { hn::Store(v, tag, at); }
  static HWY_INLINE V set(double x) { return hn::Set(tag, x); }
  static HWY_INLINE V exp1(V x) {
    Block<D, 1> block{{x}};
    exp_nonpositive(tag, block);
    return block[0];
  }

  /// out_t = x_t · u for `rows` rows of d
  static void dots(const double* X, const double* u, Index rows, Index d, double* out) {
    const Index L = width(), stride = d * L;
    in_blocks(rows, [&](auto size, Index t) ATTSVM_INLINED {
      constexpr int kRows = size;
      const double* x = X + t * stride;
      Block<D, kRows> sum;
      each<kRows>([&](auto k) ATTSVM_INLINED { sum[k] = hn::Mul(load(x + k * stride), load(u)); });
      for (Index j = L; j < stride; j += L) {
        const V factor = load(u + j);
        each<kRows>([&](auto k) ATTSVM_INLINED { sum[k] = hn::MulAdd(load(x + k * stride + j), factor, sum[k]); });
      }
      each<kRows>([&](auto k) ATTSVM_INLINED { store(sum[k], out + (t + k) * L); });
    });
  }

  /// out = Σ_t h_t x_t
  static void combine(const double* X, const double* h, Index rows, Index d, double* out) {
    const Index L = width(), stride = d * L;
    in_blocks(d, [&](auto size, Index j) ATTSVM_INLINED {
      constexpr int kColumns = size;
      const double* x = X + j * L;
      Block<D, kColumns> sum;
      each<kColumns>([&](auto k) ATTSVM_INLINED { sum[k] = hn::Mul(load(x + k * L), load(h)); });
      for (Index t = 1; t < rows; ++t) {
        x += stride;
        const V factor = load(h + t * L);
        each<kColumns>([&](auto k) ATTSVM_INLINED { sum[k] = hn::MulAdd(load(x + k * L), factor, sum[k]); });
      }
      each<kColumns>([&](auto k) ATTSVM_INLINED { store(sum[k], out + (j + k) * L); });
    });
  }

  /// Passes through the softmax of query i: replaces its logits a (T) by h, which is den times the derivative of f
  /// relative to e^low. Writes low to c, 1/den to `inverse`, and f. Tokens whose scores tie with the peak's are summed
  /// apart from the others, which they may outweigh by any factor (docs/algorithms.md).
  static void soften(const LaneGroup& group, Index i, double* a, double* gap, double* inverse) {
    const Index L = width(), end = group.T * L;
    const double* gamma = group.gamma + i * end;
    const V none = set(kNone), zero = hn::Zero(tag);
    const V seen = group.ragged ? load(group.visible + i * L) : zero;
    V peak = load(a), score = load(gamma), low = none;
    for (Index t = L, number = 1; t < end; t += L, ++number) {
      V logit = load(a + t);
      if (group.ragged) {
        logit = hn::IfThenElse(hn::Lt(set(static_cast<double>(number)), seen), logit, none);
        store(logit, a + t);
      }
      score = hn::IfThenElse(hn::Gt(logit, peak), load(gamma + t), score);
      peak = hn::Max(logit, peak);
    }
    for (Index t = 0, number = 0; t < end; t += L, ++number) {
      const V e = hn::Sub(load(a + t), peak);
      V difference = hn::Sub(load(gamma + t), score);
      if (group.ragged) {
        difference = hn::IfThenElseZero(hn::Lt(set(static_cast<double>(number)), seen), difference);
      }
      store(e, a + t);
      store(difference, gap + t);
      low = hn::Max(low, hn::IfThenElse(hn::Ne(difference, zero), e, none));
    }
    in_blocks(group.T, [&](auto size, Index t) ATTSVM_INLINED {
      constexpr int kTokens = size;
      double *at = a + t * L, *apart = gap + t * L;
      Block<D, kTokens> w;
      each<kTokens>([&](auto k) ATTSVM_INLINED {
        const V e = load(at + k * L);
        w[k] = hn::IfThenElse(hn::Ne(load(apart + k * L), zero), hn::Sub(e, low), e);
      });
      exp_nonpositive(tag, w);
      each<kTokens>([&](auto k) ATTSVM_INLINED { store(w[k], at + k * L); });
    });
    const V scale = exp1(low);
    V all = zero, tied = zero, lead = zero;
    for (Index t = 0; t < end; t += L) {
      const V difference = load(gap + t), w = load(a + t);
      all = hn::Add(all, w);
      tied = hn::IfThenElse(hn::Eq(difference, zero), hn::Add(tied, w), tied);
      lead = hn::MulAdd(w, difference, lead);
    }
    const V inv = hn::Div(set(1.0), hn::MulAdd(scale, hn::Sub(all, tied), tied));
    lead = hn::Mul(lead, inv);
    const V drift = hn::Mul(scale, lead), back = hn::Neg(lead);
    for (Index t = 0; t < end; t += L) {
      const V difference = load(gap + t);
      const V factor = hn::IfThenElse(hn::Ne(difference, zero), hn::Sub(difference, drift), back);
      store(hn::Mul(load(a + t), factor), a + t);
    }
    store(low, group.c + i * L);
    store(inv, inverse + i * L);
    store(hn::Add(score, drift), group.f + i * L);
  }

  /// Computes the weights c and the common exponent of all queries from their low, 1/den and f.
  static void weigh(const LaneGroup& group, const double* inverse) {
    const Index L = width();
    V top = set(2 * kNone);
    for (Index i = 0; i < group.n; ++i) {
      const V f = load(group.f + i * L), low = load(group.c + i * L);
      const V slope = group.loss == Loss::logistic      ? hn::Max(f, hn::Zero(tag))
                      : group.loss == Loss::exponential ? f
                                                        : hn::Zero(tag);  // −log|ℓ′| up to a bounded term
      store(hn::Sub(low, slope), group.c + i * L);
      top = hn::Max(top, hn::Sub(low, slope));
    }
    store(top, group.top);
    in_blocks(group.n, [&](auto size, Index i) ATTSVM_INLINED {
      constexpr int kQueries = size;
      Block<D, kQueries> weight, tail;
      each<kQueries>([&](auto k) ATTSVM_INLINED {
        weight[k] = hn::Sub(load(group.c + (i + k) * L), top);
        tail[k] = hn::Neg(hn::Abs(load(group.f + (i + k) * L)));
      });
      exp_nonpositive(tag, weight);
      if (group.loss == Loss::logistic) exp_nonpositive(tag, tail);  // ℓ′ = −e^{−max(f,0)}/(1 + e^{−|f|})
      each<kQueries>([&](auto k) ATTSVM_INLINED {
        const V inv = load(inverse + (i + k) * L);
        const V factor = group.loss == Loss::logistic ? hn::Div(inv, hn::Add(set(1.0), tail[k])) : inv;
        store(hn::Mul(weight[k], factor), group.c + (i + k) * L);
      });
    });
  }

  /// change_i = Σ_k (z_i·z_k) c_k v_k for vectors v of `size`; returns ‖Σ c_i v_i z_iᵀ‖² = Σ c_i v_i·change_i.
  static V spread(const LaneGroup& group, const double* vectors, Index size) {
    const Index L = width(), n = group.n;
    V square = hn::Zero(tag);
    for (Index i = 0; i < n; ++i) {
      const double *gram = group.gram + i * n * L, *own = vectors + i * size * L;
      double *change = group.change + i * size * L, *factor = group.work;
      for (Index k = 0; k < n * L; k += L) store(hn::Mul(load(group.c + k), load(gram + k)), factor + k);
      combine(vectors, factor, n, size, change);
      V even = hn::Zero(tag), odd = even;
      Index j = 0;
      for (; j + 2 <= size; j += 2) {
        even = hn::MulAdd(load(own + j * L), load(change + j * L), even);
        odd = hn::MulAdd(load(own + (j + 1) * L), load(change + (j + 1) * L), odd);
      }
      if (j < size) even = hn::MulAdd(load(own + j * L), load(change + j * L), even);
      square = hn::MulAdd(load(group.c + i * L), hn::Add(even, odd), square);
    }
    return square;
  }

  /// out = Σ_i c_i a_i b_iᵀ for vectors a of `rows` and b of `cols`; returns its squared norm.
  static V outer(const LaneGroup& group, const double* a, Index rows, const double* b, Index cols, double* out) {
    const Index L = width(), n = group.n;
    V square = hn::Zero(tag);
    for (Index j = 0; j < rows; ++j) {
      double* row = out + j * cols * L;
      for (Index i = 0; i < n; ++i) {
        store(hn::Mul(load(group.c + i * L), load(a + (i * rows + j) * L)), group.work + i * L);
      }
      combine(b, group.work, n, cols, row);
      V own = hn::Zero(tag);
      for (Index k = 0; k < cols * L; k += L) own = hn::MulAdd(load(row + k), load(row + k), own);
      square = hn::Add(square, own);
    }
    return square;
  }

  static void gradient(LaneGroup& group) {
    const Index L = width(), n = group.n, T = group.T, d = group.d, r = group.r;
    double *logits = group.work, *gap = logits + T * L, *inverse = gap + T * L;
    const double* u = group.reach;
    for (Index i = 0; i < n && group.Q != nullptr; ++i) {
      combine(group.Q, group.Z + i * group.dz * L, group.dz, r, group.reach + i * r * L);
    }
    if (r > 0) {
      for (Index i = 0; i < n; ++i) dots(group.K, group.reach + i * r * L, d, r, group.u + i * d * L);
      u = group.u;
    }
    for (Index i = 0; i < n; ++i) {
      const double* X = group.X + i * T * d * L;
      dots(X, u + i * d * L, T, d, logits);
      soften(group, i, logits, gap, inverse);
      combine(X, logits, T, d, group.g + i * d * L);
    }
    weigh(group, inverse);
    if (r == 0) {
      store(spread(group, group.g, d), group.square);
      return;
    }
    store(outer(group, group.g, d, group.reach, r, group.change_K), group.square);
    if (group.whole && group.Q == nullptr) return;
    for (Index i = 0; i < n; ++i) combine(group.K, group.g + i * d * L, d, r, group.m + i * r * L);
    store(group.whole ? outer(group, group.Z, group.dz, group.m, r, group.change_Q) : spread(group, group.m, r),
          group.square + L);
  }

  /// The factor for a step along a direction of the given squared norm.
  static V factor(const LaneGroup& group, V square, double step) {
    const auto count = static_cast<double>(group.n);
    const V zero = hn::Zero(tag), top = load(group.top), small = exp1(hn::Neg(hn::Abs(top)));
    const auto below = hn::Le(top, zero);
    V factor;
    if (group.normalized) {
      V norm = hn::Sqrt(square);
      if (group.epsilon > 0) {
        const V inverse = hn::IfThenElse(below, hn::Div(set(1.0), small), small);  // e^{−top}
        norm = hn::Add(norm, hn::Mul(set(group.epsilon * count), inverse));
      }
      factor = hn::Div(set(step), norm);
    } else {
      factor = hn::Mul(set(step / count), hn::IfThenElse(below, small, hn::Div(set(1.0), small)));
    }
    return hn::IfThenElseZero(hn::Gt(square, zero), factor);
  }

  static void move(LaneGroup& group, double step) {
    const Index L = width(), size = group.r == 0 ? group.d : group.r;
    const double* vectors = group.r == 0 ? group.g : group.m;
    const V along = factor(group, load(group.square + (group.r == 0 ? 0 : L)), step);
    for (Index i = 0; i < group.n; ++i) {
      const V share = hn::Mul(along, load(group.c + i * L));
      for (Index k = i * size * L; k < (i + 1) * size * L; k += L) {
        store(hn::MulAdd(along, load(group.change + k), load(group.reach + k)), group.reach + k);
        store(hn::MulAdd(share, load(vectors + k), load(group.added + k)), group.added + k);
      }
    }
    if (group.r == 0) return;
    const V along_K = factor(group, load(group.square), step);
    for (Index k = 0; k < group.d * group.r * L; k += L) {
      store(hn::MulAdd(along_K, load(group.change_K + k), load(group.K + k)), group.K + k);
    }
  }
};

void gradient_full(LaneGroup& group) { Lanes<hn::ScalableTag<double>>::gradient(group); }
void gradient_one(LaneGroup& group) { Lanes<hn::CappedTag<double, 1>>::gradient(group); }
void move_full(LaneGroup& group, double step) { Lanes<hn::ScalableTag<double>>::move(group, step); }
void move_one(LaneGroup& group, double step) { Lanes<hn::CappedTag<double, 1>>::move(group, step); }
Index full_width() { return static_cast<Index>(hn::Lanes(hn::ScalableTag<double>())); }

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {

HWY_EXPORT(gradient_full);
HWY_EXPORT(gradient_one);
HWY_EXPORT(move_full);
HWY_EXPORT(move_one);
HWY_EXPORT(full_width);

Index lane_width() { return HWY_DYNAMIC_DISPATCH(full_width)(); }

void lane_gradient(LaneGroup& group) {
  if (group.lanes == 1) {
    HWY_DYNAMIC_DISPATCH(gradient_one)(group);
  } else {
    HWY_DYNAMIC_DISPATCH(gradient_full)(group);
  }
}

void lane_move(LaneGroup& group, double step) {
  if (group.lanes == 1) {
    HWY_DYNAMIC_DISPATCH(move_one)(group, step);
  } else {
    HWY_DYNAMIC_DISPATCH(move_full)(group, step);
  }
}

}  // namespace attsvm::internal
#endif  // HWY_ONCE
