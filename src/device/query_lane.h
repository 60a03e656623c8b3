#pragma once

#include "device/lane.h"

namespace attsvm::internal::device {

/// The trained arrays of many runs of one shape, W or K and Q, where the card moves their entries. Of an array with
/// `size` numbers per run, number k of run s of a tile of `fit` runs is entry (tile·size + k)·fit + s.
struct WholeArrays {
  double *theta, *change, *squares;  ///< the array, its descent direction (both rows·cols), squares of its rows (rows)
  double *mean, *square, *block;     ///< the optimizer's memory, as in LaneArray (rows·cols), or null
};

/// Numbers of many runs of one shape. Runs are put into tiles of `lanes` lanes, as many as fit, one query per lane; of
/// an array with `size` numbers per query, number k of a lane is entry (tile·size + k)·lanes + lane.
struct LaneArrays {
  const double *X, *gamma, *gram, *visible;  ///< keys (T·d), scores (T), z·z of the other queries (n), tokens seen (1)
  double *reach, *added;                     ///< the point, as in LaneGroup: (d), or (r) where K or W is an array
  double *f, *c, *g, *top;                   ///< of the last gradient, as in LaneGroup: (1), (1), (d), (1)
  double* rest;      ///< (1): the first step at which the gradient of the run was zero; −1: none yet
  double* scratch;   ///< (T + d + r), for sizes that are not fixed
  double* m;         ///< Kᵀ g (r)
  const double* Z;   ///< queries (dz), where Q is moved entry by entry
  WholeArrays K, Q;  ///< K or W, and Q; null where there is none
};

/// Every kLanes-th number from `at` on: what one lane has in a tile, or one run.
struct Column {
  double* at;
  int stride;
  ATTSVM_LANE double& operator[](int k) const { return at[k * stride]; }
};

/// Numbers in registers.
template <int kCount>
struct Held {
  double at[static_cast<unsigned>(kCount)];
  ATTSVM_LANE double& operator[](int k) { return at[k]; }
  ATTSVM_LANE const double& operator[](int k) const { return at[k]; }
};

/// Sizes that the compiler knows: a lane holds its numbers in registers. R = 0: W is trained.
template <int N, int T_, int D, int R = 0>
struct FixedSizes {
  static constexpr int n = N, T = T_, d = D, r = R, dz = 0, kSummed = R;
  using Keys = Held<T * D>;
  using Tokens = Held<T>;
  using Vector = Held<D>;
  using Slice = Held<R == 0 ? D : R>;
};

/// Any sizes: a lane works on its columns of the arrays.
struct AnySizes {
  static constexpr int kSummed = 8;  // numbers of a row that are summed at a time
  int n, T, d, r = 0, dz = 0;
  using Keys = Column;
  using Tokens = Column;
  using Vector = Column;
  using Slice = Column;
};

/// What the queries of a run show each other, and their columns of the arrays that are not in registers. Entry `lane`
/// of exponent, c and sum belongs to lane `lane`; number j of its g is entry j·stride + lane.
struct Board {
  double *g, *exponent, *c, *sum, *gamma, *gram, *added;
  int stride;
  double *reach = nullptr, *m = nullptr, *Z = nullptr;  // where K or W is an array
};

/// One query of a run. Between two phases, all lanes of a run must have ended the former.
template <class Sizes>
class QueryLane : protected Sizes {
 public:
  using Shape = Sizes;
  /// `first` is the lane of the run's first query.
  ATTSVM_LANE QueryLane(const Sizes& sizes, const Board& board, int lane, int first)
      : Sizes(sizes),
        lane_(lane),
        first_(first),
        gamma_{board.gamma + lane, board.stride},
        gram_{board.gram + lane, board.stride},
        added_{board.added + lane, board.stride},
        g_{board.g + lane, board.stride},
        board_(board) {}

  typename Sizes::Keys x;    ///< (T,d)
  typename Sizes::Tokens a;  ///< logits, then h
  typename Sizes::Vector u;
  typename Sizes::Slice change;
  int seen = 0;  ///< how many tokens the query sees

  using Sizes::d;
  using Sizes::n;
  using Sizes::T;

  /// Forward, and the direction g of this query.
  ATTSVM_LANE void look(const LaneRule& rule) {
    ATTSVM_UNROLL for (int t = 0; t < T; ++t) {
      double logit = x[t * d] * u[0];
      ATTSVM_UNROLL for (int j = 1; j < d; ++j) logit = fma(x[t * d + j], u[j], logit);
      a[t] = logit;
    }
    facts_ = soften(a, gamma_, T, seen);
    ATTSVM_UNROLL for (int j = 0; j < d; ++j) {
      double g = x[j] * a[0];
      ATTSVM_UNROLL for (int t = 1; t < T; ++t) g = fma(x[t * d + j], a[t], g);
      g_[j] = g;
    }
    board_.exponent[lane_] = exponent_of(rule, facts_);
  }

  /// The weight of this query among all.
  ATTSVM_LANE void weigh(const LaneRule& rule) {
    top_ = 2 * kNone;
    ATTSVM_UNROLL for (int k = 0; k < n; ++k) {
      const double other = board_.exponent[first_ + k];
      top_ = other > top_ ? other : top_;
    }
    board_.c[lane_] = weight_of(rule, facts_, board_.exponent[lane_], top_);
  }

  /// How this query's u changes, and its part of the squared norm.
  ATTSVM_LANE void spread() { spread(board_.g, d); }

  /// The squared norm of the direction of W; the same for all queries of a run.
  ATTSVM_LANE double square() const {
    double square = 0;
    ATTSVM_UNROLL for (int k = 0; k < n; ++k) square = fma(board_.c[first_ + k], board_.sum[first_ + k], square);
    return square;
  }

  ATTSVM_LANE void move(const LaneRule& rule, double square, double step) { move(rule, square, step, u, g_, d); }

  ATTSVM_LANE double f() const { return facts_.f; }
  ATTSVM_LANE double top() const { return top_; }

 protected:
  /// The same for the vectors of `size` whose column of lane 0 is at `vectors`.
  ATTSVM_LANE void spread(double* vectors, int size) {
    ATTSVM_UNROLL for (int k = 0; k < n; ++k) {
      const double factor = board_.c[first_ + k] * gram_[k];
      const double* v = vectors + first_ + k;
      ATTSVM_UNROLL for (int j = 0; j < size; ++j) {
        change[j] = k == 0 ? v[j * board_.stride] * factor : fma(v[j * board_.stride], factor, change[j]);
      }
    }
    const Column own{vectors + lane_, board_.stride};
    double even = 0, odd = 0;
    ATTSVM_UNROLL for (int j = 0; j + 2 <= size; j += 2) {
      even = fma(own[j], change[j], even);
      odd = fma(own[j + 1], change[j + 1], odd);
    }
    if (size % 2 == 1) even = fma(own[size - 1], change[size - 1], even);
    board_.sum[lane_] = even + odd;
  }

  template <class Reach>
  ATTSVM_LANE void move(const LaneRule& rule, double square, double step, Reach& reach, const Column& vector,
                        int size) {
    const double along = step_factor(rule, square, top_, step), share = along * board_.c[lane_];
    ATTSVM_UNROLL for (int j = 0; j < size; ++j) {
      reach[j] = fma(along, change[j], reach[j]);
      added_[j] = fma(share, vector[j], added_[j]);
    }
  }

  int lane_, first_;
  Column gamma_, gram_, added_, g_;
  Board board_;
  double top_ = 0;
  QueryFacts facts_{};
};

}  // namespace attsvm::internal::device
