#pragma once

#include "device/lane.h"

namespace attsvm::internal::device {

// Eight threads per query, for tasks whose keys do not fit into the registers of one: each thread holds kSlice numbers
// of every key, sums over them by shuffles, and takes the softmax of an eighth of the tokens. Sums run in another order
// than those of the CPU, but always in the same.

constexpr int kEight = 8;

/// Eight threads of a warp, which hold one number each of what is called a value here. All threads of the warp have to
/// do the same.
#ifdef __CUDACC__
struct EightThreads {
  static constexpr int kSlots = 1;
  __device__ __forceinline__ static int slot(int) { return 0; }
  template <class Body>
  __device__ __forceinline__ void lanes(const Body& body) const {
    body(static_cast<int>(threadIdx.x % kEight));
  }
  /// out = the number of lane `lane xor mask`
  __device__ __forceinline__ void exchange(const double* in, double* out, int mask) const {
    out[0] = __shfl_xor_sync(~0U, in[0], mask);
  }
  __device__ __forceinline__ void meet() const { __syncwarp(); }
};
#endif

/// The same as a loop, for tests.
struct EightTurns {
  static constexpr int kSlots = kEight;
  static int slot(int lane) { return lane; }
  template <class Body>
  void lanes(const Body& body) const {
    for (int lane = 0; lane < kEight; ++lane) body(lane);
  }
  void exchange(const double* in, double* out, int mask) const {
    for (int lane = 0; lane < kEight; ++lane) out[lane] = in[lane ^ mask];
  }
  void meet() const {}
};

/// What the queries of a run share; `vectors`, `added` and `h` have a row per query, `gram` has `stride` numbers per
/// row.
struct SplitBoard {
  double *vectors, *added, *h, *exponent, *sum, *gram;
  int n, stride;
};

/// One query of a run that trains W, with up to kTokens tokens of up to 8·kSlice numbers. Between two phases, all
/// queries of a run must have ended the former.
template <class Team, int kTokens, int kSlice>
class SplitLane {
 public:
  static constexpr int kOwn = (kTokens + kEight - 1) / kEight, kPadded = kOwn * kEight, kWidth = kEight * kSlice;
  // Rows of the board, so long that those of the four queries of a warp lie in different banks.
  static constexpr int kVectorRow = kWidth + kEight, kTokenRow = kPadded + 2;

  struct Value {
    double at[static_cast<unsigned>(Team::kSlots)];
    ATTSVM_LANE double& of(int lane) { return at[Team::slot(lane)]; }
    ATTSVM_LANE double of(int lane) const { return at[Team::slot(lane)]; }
  };

  ATTSVM_LANE SplitLane(const Team& team, const SplitBoard& board, int query)
      : team_(team), board_(board), query_(query) {}

  Value x[static_cast<unsigned>(kTokens)][static_cast<unsigned>(kSlice)];  ///< numbers lane·kSlice + j of token t
  Value u[static_cast<unsigned>(kSlice)];
  Value gamma[static_cast<unsigned>(kOwn)];  ///< scores of tokens lane·kOwn + k
  int seen = 0;

  /// Forward, and the direction g of this query.
  ATTSVM_LANE void look(const LaneRule& rule) {
    Value logits[static_cast<unsigned>(kPadded / 2)];
    first_half(logits);
    halve<2, kPadded / 4>(logits);
    halve<1, kPadded / 8>(logits);
    soften(logits);
    team_.lanes([&](int lane) {
      const double* h = board_.h + query_ * kTokenRow;
      ATTSVM_UNROLL for (int j = 0; j < kSlice; ++j) g_[j].of(lane) = x[0][j].of(lane) * h[0];
      ATTSVM_UNROLL for (int t = 1; t < kTokens; ++t) {
        ATTSVM_UNROLL for (int j = 0; j < kSlice; ++j) g_[j].of(lane) = fma(x[t][j].of(lane), h[t], g_[j].of(lane));
      }
      if (lane == 0) board_.exponent[query_] = exponent_of(rule, facts_);
    });
  }

  /// The weight of this query among all, and its part c·g of the direction.
  ATTSVM_LANE void weigh(const LaneRule& rule) {
    Value top;
    team_.lanes([&](int lane) {
      top.of(lane) = 2 * kNone;
      for (int k = lane; k < board_.n; k += kEight) {
        top.of(lane) = board_.exponent[k] > top.of(lane) ? board_.exponent[k] : top.of(lane);
      }
    });
    combine(top, [](double a, double b) { return a > b ? a : b; });
    team_.lanes([&](int lane) {
      top_ = top.of(lane);
      c_ = weight_of(rule, facts_, exponent_of(rule, facts_), top_);
      double* own = board_.vectors + query_ * kVectorRow + lane;
      ATTSVM_UNROLL for (int j = 0; j < kSlice; ++j) own[j * kEight] = c_ * g_[j].of(lane);
    });
  }

  /// How this query's u changes, and its part of the squared norm.
  ATTSVM_LANE void spread() {
    Value part;
    team_.lanes([&](int lane) {
      const double* gram = board_.gram + query_ * board_.stride;
      double change[static_cast<unsigned>(kSlice)] = {};
#ifdef __CUDACC__
#pragma unroll 5
#endif
      for (int k = 0; k < board_.n; ++k) {
        const double* v = board_.vectors + k * kVectorRow + lane;
        ATTSVM_UNROLL for (int j = 0; j < kSlice; ++j) change[j] = fma(v[j * kEight], gram[k], change[j]);
      }
      const double* own = board_.vectors + query_ * kVectorRow + lane;
      double sum = 0;
      ATTSVM_UNROLL for (int j = 0; j < kSlice; ++j) {
        change_[j].of(lane) = change[j];
        sum = fma(own[j * kEight], change[j], sum);
      }
      part.of(lane) = sum;
    });
    combine(part, [](double a, double b) { return a + b; });
    team_.lanes([&](int lane) {
      if (lane == 0) board_.sum[query_] = part.of(lane);
    });
  }

  /// The squared norm of the direction of W; the same for all queries of a run.
  ATTSVM_LANE double square() {
    Value part;
    team_.lanes([&](int lane) {
      part.of(lane) = 0;
      for (int k = lane; k < board_.n; k += kEight) part.of(lane) += board_.sum[k];
    });
    combine(part, [](double a, double b) { return a + b; });
    double square = 0;
    team_.lanes([&](int lane) { square = part.of(lane); });
    return square;
  }

  ATTSVM_LANE void move(const LaneRule& rule, double square, double step) {
    const double along = step_factor(rule, square, top_, step);
    team_.lanes([&](int lane) {
      const double* own = board_.vectors + query_ * kVectorRow + lane;
      double* added = board_.added + query_ * kVectorRow + lane;
      ATTSVM_UNROLL for (int j = 0; j < kSlice; ++j) {
        u[j].of(lane) = fma(along, change_[j].of(lane), u[j].of(lane));
        added[j * kEight] = fma(along, own[j * kEight], added[j * kEight]);
      }
    });
  }

  ATTSVM_LANE double f() const { return facts_.f; }
  ATTSVM_LANE double c() const { return c_; }
  ATTSVM_LANE double top() const { return top_; }
  ATTSVM_LANE double g(int lane, int j) const { return g_[j].of(lane); }

 private:
  ATTSVM_LANE double logit(int lane, int t) const {
    if (t >= kTokens) return 0;
    double sum = x[t][0].of(lane) * u[0].of(lane);
    ATTSVM_UNROLL for (int j = 1; j < kSlice; ++j) sum = fma(x[t][j].of(lane), u[j].of(lane), sum);
    return sum;
  }

  /// Every lane keeps the half of the tokens on its side, summed over itself and lane xor 4.
  ATTSVM_LANE void first_half(Value* logits) const {
    constexpr int kHalf = kPadded / 2;
    ATTSVM_UNROLL for (int k = 0; k < kHalf; ++k) {
      Value kept, sent, got;
      team_.lanes([&](int lane) {
        const double low = logit(lane, k), high = logit(lane, k + kHalf);
        kept.of(lane) = (lane & 4) != 0 ? high : low;
        sent.of(lane) = (lane & 4) != 0 ? low : high;
      });
      team_.exchange(sent.at, got.at, 4);
      team_.lanes([&](int lane) { logits[k].of(lane) = kept.of(lane) + got.of(lane); });
    }
  }

  template <int kMask, int kHalf>
  ATTSVM_LANE void halve(Value* logits) const {
    ATTSVM_UNROLL for (int k = 0; k < kHalf; ++k) {
      Value kept, sent, got;
      team_.lanes([&](int lane) {
        const double low = logits[k].of(lane), high = logits[k + kHalf].of(lane);
        kept.of(lane) = (lane & kMask) != 0 ? high : low;
        sent.of(lane) = (lane & kMask) != 0 ? low : high;
      });
      team_.exchange(sent.at, got.at, kMask);
      team_.lanes([&](int lane) { logits[k].of(lane) = kept.of(lane) + got.of(lane); });
    }
  }

  /// All lanes get the same bits, because the operations are commutative.
  template <class Operation>
  ATTSVM_LANE void combine(Value& value, const Operation& operation) const {
    ATTSVM_UNROLL for (int mask = 4; mask > 0; mask /= 2) {
      Value got;
      team_.exchange(value.at, got.at, mask);
      team_.lanes([&](int lane) { value.of(lane) = operation(value.of(lane), got.of(lane)); });
    }
  }

  /// The softmax of an eighth of the tokens per lane, as in soften(); writes h to the board.
  ATTSVM_LANE void soften(Value* a) {
    Value peak, score;
    team_.lanes([&](int lane) {
      ATTSVM_UNROLL for (int k = 0; k < kOwn; ++k) {
        if (lane * kOwn + k >= seen) a[k].of(lane) = kNone;
        const bool higher = k == 0 || a[k].of(lane) > peak.of(lane);
        score.of(lane) = higher ? gamma[k].of(lane) : score.of(lane);
        peak.of(lane) = higher ? a[k].of(lane) : peak.of(lane);
      }
    });
    // The token of the highest logit; the first one of several.
    ATTSVM_UNROLL for (int mask = 1; mask < kEight; mask *= 2) {
      Value other_peak, other_score;
      team_.exchange(peak.at, other_peak.at, mask);
      team_.exchange(score.at, other_score.at, mask);
      team_.lanes([&](int lane) {
        const double mine = peak.of(lane), other = other_peak.of(lane);
        const bool higher = other > mine || (other == mine && (lane & mask) != 0);
        peak.of(lane) = higher ? other : mine;
        score.of(lane) = higher ? other_score.of(lane) : score.of(lane);
      });
    }
    Value low, all, tied, lead;
    team_.lanes([&](int lane) {
      low.of(lane) = kNone;
      ATTSVM_UNROLL for (int k = 0; k < kOwn; ++k) {
        a[k].of(lane) -= peak.of(lane);
        const bool apart = nonzero(gap(lane, k, score));
        low.of(lane) = apart && a[k].of(lane) > low.of(lane) ? a[k].of(lane) : low.of(lane);
      }
    });
    combine(low, [](double one, double other) { return one > other ? one : other; });
    team_.lanes([&](int lane) {
      all.of(lane) = tied.of(lane) = lead.of(lane) = 0;
      ATTSVM_UNROLL for (int k = 0; k < kOwn; ++k) {
        const double own = gap(lane, k, score);
        a[k].of(lane) = exp_below(nonzero(own) ? a[k].of(lane) - low.of(lane) : a[k].of(lane));
        all.of(lane) += nonzero(own) ? a[k].of(lane) : 0.0;
        tied.of(lane) += nonzero(own) ? 0.0 : a[k].of(lane);
        lead.of(lane) = fma(a[k].of(lane), own, lead.of(lane));
      }
    });
    const auto add = [](double one, double other) { return one + other; };
    combine(all, add);
    combine(tied, add);
    combine(lead, add);
    team_.lanes([&](int lane) {
      const double scale = exp_below(low.of(lane)), inverse = 1.0 / fma(scale, all.of(lane), tied.of(lane));
      const double leading = lead.of(lane) * inverse, drift = scale * leading;
      ATTSVM_UNROLL for (int k = 0; k < kOwn; ++k) {
        const double own = gap(lane, k, score);
        board_.h[query_ * kTokenRow + lane * kOwn + k] = a[k].of(lane) * (nonzero(own) ? own - drift : -leading);
      }
      facts_ = {score.of(lane) + drift, low.of(lane), inverse};
    });
    team_.meet();
  }

  ATTSVM_LANE double gap(int lane, int k, const Value& score) const {
    return lane * kOwn + k < seen ? gamma[k].of(lane) - score.of(lane) : 0.0;
  }

  Team team_;
  SplitBoard board_;
  int query_;
  Value g_[static_cast<unsigned>(kSlice)], change_[static_cast<unsigned>(kSlice)];
  double c_ = 0, top_ = 0;
  QueryFacts facts_{};
};

}  // namespace attsvm::internal::device
