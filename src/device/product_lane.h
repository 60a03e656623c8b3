#pragma once

#include "device/entry_step.h"
#include "device/query_lane.h"

namespace attsvm::internal::device {

/// WholeArrays of one run: entry k is number k·stride.
struct RunArray {
  double *theta, *change, *squares, *mean, *square, *block;
  int stride;
};

/// One query of a run that trains K and Q, or any arrays entry by entry: W then stands in place of K, and z_i of s_i.
/// The queries of a run share the rows of the arrays among them. `kWhole`: entry by entry.
template <class Sizes, bool kWhole>
class ProductLane : public QueryLane<Sizes> {
  using Base = QueryLane<Sizes>;

 public:
  using Base::change;
  using Base::d;
  using Base::dz;
  using Base::n;
  using Base::r;
  using Base::u;

  ATTSVM_LANE ProductLane(const Sizes& sizes, const Board& board, int lane, int first, const RunArray& K,
                          const RunArray& Q)
      : Base(sizes, board, lane, first),
        K_(K),
        Q_(Q),
        reach_{board.reach + lane, board.stride},
        m_{board.m + lane, board.stride},
        Z_{board.Z + lane, board.stride} {}

  /// Forward, and the directions g and Kᵀ g of this query.
  ATTSVM_LANE void look(const LaneRule& rule) {
    if (kWhole && has_Q()) gather(Q_, Z_, dz, reach_);
    ATTSVM_UNROLL for (int j = 0; j < d; ++j) {
      double sum = K_.theta[j * r * K_.stride] * reach_[0];
      ATTSVM_UNROLL for (int k = 1; k < r; ++k) sum = fma(K_.theta[(j * r + k) * K_.stride], reach_[k], sum);
      u[j] = sum;
    }
    Base::look(rule);
    if (!kWhole || has_Q()) gather(K_, this->g_, d, m_);
  }

  /// The directions of the arrays' rows that this query takes care of, and of its s.
  ATTSVM_LANE void spread() {
    outer(K_, this->board_.g, d, this->board_.reach);
    if constexpr (kWhole) {
      if (has_Q()) outer(Q_, this->board_.Z, dz, this->board_.m);
    } else {
      Base::spread(this->board_.m, r);
    }
  }

  /// The squared norms of the directions of K (or W) and Q; the same for all queries of a run.
  ATTSVM_LANE double square_K() const { return sum_of(K_.squares, d); }
  ATTSVM_LANE double square_Q() const {
    if constexpr (!kWhole) return Base::square();
    return has_Q() ? sum_of(Q_.squares, dz) : 0.0;
  }

  /// A step along the gradients.
  ATTSVM_LANE void move(const LaneRule& rule, double square_K, double square_Q, double step) {
    Base::move(rule, square_Q, step, reach_, m_, r);
    const double along = step_factor(rule, square_K, this->top_, step);
    each_entry(K_, d, [&](int k) { K_.theta[k] = fma(along, K_.change[k], K_.theta[k]); });
  }

  /// A step entry by entry.
  ATTSVM_LANE void move(const EntryRule& rule, const StepSize& step) {
    const GradientScale scale(rule, this->top_);
    move(rule, step, scale, K_, d);
    if (has_Q()) move(rule, step, scale, Q_, dz);
  }

 private:
  ATTSVM_LANE bool has_Q() const { return Q_.theta != nullptr; }
  ATTSVM_LANE int rank() const { return this->lane_ - this->first_; }

  /// out = Aᵀ b for an array of `rows`
  ATTSVM_LANE void gather(const RunArray& A, const Column& b, int rows, const Column& out) const {
    ATTSVM_UNROLL for (int k = 0; k < r; ++k) {
      double sum = A.theta[k * A.stride] * b[0];
      ATTSVM_UNROLL for (int j = 1; j < rows; ++j) sum = fma(A.theta[(j * r + k) * A.stride], b[j], sum);
      out[k] = sum;
    }
  }

  /// Own rows of Σ_i c_i a_i b_iᵀ, for vectors a of `rows` and b of r, whose columns of lane 0 are `left` and `right`.
  ATTSVM_LANE void outer(const RunArray& A, const double* left, int rows, const double* right) const {
    constexpr int kChunk = Sizes::kSummed;
    const int stride = this->board_.stride;
    for (int j = rank(); j < rows; j += n) {
      double square = 0;
      ATTSVM_UNROLL for (int from = 0; from < r; from += kChunk) {
        double sum[static_cast<unsigned>(kChunk)];
        ATTSVM_UNROLL for (int i = 0; i < n; ++i) {
          const int other = this->first_ + i;
          const double factor = this->board_.c[other] * left[j * stride + other];
          ATTSVM_UNROLL for (int k = 0; k < kChunk; ++k) {
            if (from + k >= r) continue;
            const double value = right[(from + k) * stride + other];
            sum[k] = i == 0 ? value * factor : fma(value, factor, sum[k]);
          }
        }
        ATTSVM_UNROLL for (int k = 0; k < kChunk; ++k) {
          if (from + k >= r) continue;
          A.change[(j * r + from + k) * A.stride] = sum[k];
          square = fma(sum[k], sum[k], square);
        }
      }
      A.squares[j * A.stride] = square;
    }
  }

  ATTSVM_LANE double sum_of(const double* squares, int rows) const {
    double sum = 0;
    ATTSVM_UNROLL for (int j = 0; j < rows; ++j) sum += squares[j * K_.stride];
    return sum;
  }

  /// Calls use(offset) for all entries of own rows.
  template <class Use>
  ATTSVM_LANE void each_entry(const RunArray& A, int rows, const Use& use) const {
    for (int j = rank(); j < rows; j += n) {
      ATTSVM_UNROLL for (int k = 0; k < r; ++k) use((j * r + k) * A.stride);
    }
  }

  ATTSVM_LANE void move(const EntryRule& rule, const StepSize& step, const GradientScale& scale, const RunArray& A,
                        int rows) {
    const bool remembers = A.mean != nullptr, adam = A.square != nullptr;
    each_entry(A, rows, [&](int k) {
      Entry entry{A.theta[k], remembers ? A.mean[k] : 0, adam ? A.square[k] : 0, remembers ? A.block[k] : 0};
      entry_step(rule, step, scale, A.change[k], entry);
      A.theta[k] = entry.theta;
      if (remembers) A.mean[k] = entry.mean;
      if (remembers) A.block[k] = entry.block;
      if (adam) A.square[k] = entry.square;
    });
  }

  RunArray K_, Q_;
  Column reach_, m_, Z_;
};

}  // namespace attsvm::internal::device
