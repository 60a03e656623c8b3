// Many small runs of one shape that train K and Q, or any arrays entry by entry. Launches are those of device_runs.cpp.

#include "device/tiles.cuh"

namespace attsvm::internal::device {
namespace {

/// Takes steps as in runs.cu. `phase(work)` does work() in lanes with a query, and then all lanes of the run meet.
template <class Sizes, bool kWhole, class Phase>
__device__ __forceinline__ void take_steps(ProductLane<Sizes, kWhole>& query, const LaneRule& rule,
                                           const EntryRule& entries, const StepSize* steps, int count, double number,
                                           double& rest, const Phase& phase) {
  for (int k = 0;; ++k) {
    phase([&] { query.look(rule); });
    phase([&] { query.weigh(rule); });
    phase([&] { query.spread(); });
    if (k == count) return;
    phase([&] {
      const double square_K = query.square_K(), square_Q = query.square_Q();
      // An optimizer that remembers gradients moves on unless all were zero.
      const bool rests = !kWhole || (entries.decay == 0 && (!remembers(entries) || number + k == 0));
      if (!(square_K > 0) && !(square_Q > 0) && rest < 0 && rests) rest = number + k;
      if constexpr (kWhole) {
        query.move(entries, steps[k]);
      } else {
        query.move(rule, square_K, square_Q, __ldg(&steps[k].size));
      }
    });
  }
}

/// As run_fixed of runs.cu, with K in shared memory.
template <int N, int T, int D, int R>
__device__ __forceinline__ void run_fixed(const LaneArrays& arrays, long long runs, const LaneRule& rule,
                                          const StepSize* steps, int count, double number) {
  constexpr int kLanes = 32, kTiles = 2, kFit = kLanes / N, kNumbers = D * R + D * R % 2 + 2;
  struct Tile {
    double rows[D + 3 + T + N + 3 * R][kLanes];
    double K[kFit][kNumbers], change[kFit][kNumbers], squares[kFit][D];
  };
  __shared__ Tile shared[kTiles];
  const int lane = threadIdx.x % kLanes, slot = lane / N, first = slot * N;
  const long long tile = static_cast<long long>(blockIdx.x) * kTiles + threadIdx.x / kLanes;
  const bool used = slot < kFit && tile * kFit + slot < runs;
  const unsigned others = __ballot_sync(~0U, used);
  if (!used) return;
  Tile& mine = shared[threadIdx.x / kLanes];
  auto& rows = mine.rows;
  constexpr int kGram = D + 3 + T, kAdded = kGram + N;
  const Board board{rows[0],     rows[D],      rows[D + 1], rows[D + 2],      rows[D + 3],         rows[kGram],
                    rows[kAdded], kLanes,       rows[kAdded + R], rows[kAdded + 2 * R], nullptr};
  const RunArray K{mine.K[slot], mine.change[slot], mine.squares[slot], nullptr, nullptr, nullptr, 1};
  ProductLane<FixedSizes<N, T, D, R>, false> query({}, board, lane, first, K, {});
  const auto of = [&](const double* array, int size, int k) { return part(array, tile, size, kLanes)[k * kLanes + lane]; };
  query.seen = static_cast<int>(of(arrays.visible, 1, 0));
#pragma unroll
  for (int k = 0; k < T * D; ++k) query.x[k] = of(arrays.X, T * D, k);
  for (int t = 0; t < T; ++t) board.gamma[t * kLanes + lane] = of(arrays.gamma, T, t);
  for (int k = 0; k < N; ++k) board.gram[k * kLanes + lane] = of(arrays.gram, N, k);
  for (int k = 0; k < R; ++k) {
    board.reach[k * kLanes + lane] = of(arrays.reach, R, k);
    board.added[k * kLanes + lane] = of(arrays.added, R, k);
  }
  double* theta = part(arrays.K.theta, tile, D * R, kFit) + slot;
  for (int k = lane - first; k < D * R; k += N) mine.K[slot][k] = theta[k * kFit];
  __syncwarp(others);
  double rest = of(arrays.rest, 1, 0);
  take_steps(query, rule, {}, steps, count, number, rest, [&](const auto& work) {
    work();
    __syncwarp(others);
  });
  for (int k = lane - first; k < D * R; k += N) theta[k * kFit] = mine.K[slot][k];
  for (int k = 0; k < R; ++k) {
    part(arrays.reach, tile, R, kLanes)[k * kLanes + lane] = board.reach[k * kLanes + lane];
    part(arrays.added, tile, R, kLanes)[k * kLanes + lane] = board.added[k * kLanes + lane];
  }
  for (int j = 0; j < D; ++j) part(arrays.g, tile, D, kLanes)[j * kLanes + lane] = board.g[j * kLanes + lane];
  report(query, arrays, tile, kLanes, lane, board.c[lane], rest);
}

__device__ __forceinline__ RunArray run_array(const WholeArrays& arrays, long long tile, int rows, int size, int fit,
                                              int slot) {
  const auto at = [&](double* array, int count) { return array == nullptr ? nullptr : part(array, tile, count, fit) + slot; };
  return {at(arrays.theta, size), at(arrays.change, size), at(arrays.squares, rows), at(arrays.mean, size),
          at(arrays.square, size), at(arrays.block, size),  fit};
}

/// A block is a tile: every lane works on its columns in the card's memory, and on rows of its run's arrays.
template <bool kWhole>
__device__ __forceinline__ void run_any(const LaneArrays& arrays, long long runs, const LaneRule& rule,
                                        const StepSize* steps, int count, double number, const AnySizes& sizes,
                                        const EntryRule& entries) {
  constexpr int kLanes = 64;
  __shared__ double exponent[kLanes], c[kLanes], sum[kLanes];
  const int lane = threadIdx.x, n = sizes.n, T = sizes.T, d = sizes.d, r = sizes.r, dz = sizes.dz, fit = kLanes / n;
  const long long tile = blockIdx.x;
  const int slot = lane / n < fit ? lane / n : 0;
  const bool used = lane < fit * n && tile * fit + slot < runs;
  const Board board{part(arrays.g, tile, d, kLanes), exponent, c, sum, part_read(arrays.gamma, tile, T, kLanes),
                    part_read(arrays.gram, tile, n, kLanes), part(arrays.added, tile, r, kLanes), kLanes,
                    part(arrays.reach, tile, r, kLanes), part(arrays.m, tile, r, kLanes),
                    part_read(arrays.Z, tile, dz, kLanes)};
  ProductLane<AnySizes, kWhole> query(sizes, board, lane, slot * n, run_array(arrays.K, tile, d, d * r, fit, slot),
                                      run_array(arrays.Q, tile, dz, dz * r, fit, slot));
  double* scratch = part(arrays.scratch, tile, T + d + r, kLanes) + lane;
  query.x = {part_read(arrays.X, tile, T * d, kLanes) + lane, kLanes};
  query.a = {scratch, kLanes};
  query.u = {scratch + T * kLanes, kLanes};
  query.change = {scratch + (T + d) * kLanes, kLanes};
  query.seen = static_cast<int>(part(arrays.visible, tile, 1, kLanes)[lane]);
  double rest = part(arrays.rest, tile, 1, kLanes)[lane];
  take_steps(query, rule, entries, steps, count, number, rest, [&](const auto& work) {
    if (used) work();
    __syncthreads();
  });
  report(query, arrays, tile, kLanes, lane, c[lane], rest);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64, 8) run_KQ_any(LaneArrays arrays, long long runs, LaneRule rule,
                                                            const StepSize* steps, int count, double number,
                                                            AnySizes sizes) {
  run_any<false>(arrays, runs, rule, steps, count, number, sizes, {});
}

extern "C" __global__ void __launch_bounds__(64, 6) run_entries_any(LaneArrays arrays, long long runs, LaneRule rule,
                                                                 const StepSize* steps, int count, double number,
                                                                 AnySizes sizes, EntryRule entries) {
  run_any<true>(arrays, runs, rule, steps, count, number, sizes, entries);
}

}  // namespace attsvm::internal::device

// K and Q of d columns, which is their usual number where queries are as long as keys.
#define ATTSVM_SHAPE(N, T, D)                                                                               \
  extern "C" __global__ void __launch_bounds__(64, 4)                                                       \
      run_KQ_##N##_##T##_##D##_##D(attsvm::internal::device::LaneArrays arrays, long long runs,             \
                                   attsvm::internal::device::LaneRule rule,                                 \
                                   const attsvm::internal::device::StepSize* steps, int count, double number) { \
    attsvm::internal::device::run_fixed<N, T, D, D>(arrays, runs, rule, steps, count, number);              \
  }

#include "device/shapes.h"
