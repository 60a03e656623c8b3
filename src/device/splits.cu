// Runs of one shape that train W along its gradient, eight threads per query. Launches are those of device_runs.cpp.

#include "device/split_lane.h"
#include "device/tiles.cuh"

namespace attsvm::internal::device {
namespace {

/// A block is a tile of 32 queries.
template <int kTokens, int kSlice>
__device__ __forceinline__ void run_split(const LaneArrays& arrays, long long runs, const LaneRule& rule,
                                          const StepSize* steps, int count, double number, const AnySizes& sizes) {
  using Lane = SplitLane<EightThreads, kTokens, kSlice>;
  constexpr int kLanes = 32, kRow = Lane::kVectorRow;
  __shared__ double vectors[kLanes * kRow], added[kLanes * kRow], h[kLanes * Lane::kTokenRow], exponents[kLanes], sums[kLanes], grams[kLanes * (kLanes + 1)];
  const int query = static_cast<int>(threadIdx.x) / kEight, lane = static_cast<int>(threadIdx.x) % kEight;
  const int n = sizes.n, T = sizes.T, d = sizes.d, fit = kLanes / n, slot = query / n;
  const long long tile = blockIdx.x;
  // Threads without a query do what the others do, alone: a warp that parts in two is slow at every shuffle from there.
  const bool used = slot < fit && tile * fit + slot < runs;
  const int first = used ? slot * n : query;
  const int stride = n | 1;  // odd: rows lie in different banks
  const SplitBoard board{vectors + first * kRow, added + first * kRow, h + first * Lane::kTokenRow,
                         exponents + first, sums + first, grams + first * stride, used ? n : 0, stride};
  Lane mine({}, board, query - first);
  const auto of = [&](const double* array, int size, int k) { return part(array, tile, size, kLanes)[k * kLanes + query]; };
  double rest = used ? of(arrays.rest, 1, 0) : -1;
  mine.seen = used ? static_cast<int>(of(arrays.visible, 1, 0)) : 0;
#pragma unroll
  for (int j = 0; j < kSlice; ++j) {
    const int at = lane * kSlice + j;
    const bool in = used && at < d;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) mine.x[t][j].at[0] = in && t < T ? of(arrays.X, T * d, t * d + at) : 0.0;
    mine.u[j].at[0] = in ? of(arrays.reach, d, at) : 0.0;
    added[query * kRow + j * kEight + lane] = in ? of(arrays.added, d, at) : 0.0;
  }
#pragma unroll
  for (int k = 0; k < Lane::kOwn; ++k) {
    const int t = lane * Lane::kOwn + k;
    mine.gamma[k].at[0] = used && t < T ? of(arrays.gamma, T, t) : 0.0;
  }
  for (int k = lane; k < n && used; k += kEight) grams[query * stride + k] = of(arrays.gram, n, k);
  __syncthreads();
  for (int k = 0;; ++k) {
    mine.look(rule);
    __syncthreads();
    mine.weigh(rule);
    __syncthreads();
    mine.spread();
    __syncthreads();
    if (k == count) break;
    const double square = mine.square();
    if (!(square > 0) && rest < 0) rest = number + k;
    mine.move(rule, square, __ldg(&steps[k].size));
  }
  if (!used) return;
#pragma unroll
  for (int j = 0; j < kSlice; ++j) {
    const int at = lane * kSlice + j;
    if (at >= d) continue;
    part(arrays.reach, tile, d, kLanes)[at * kLanes + query] = mine.u[j].at[0];
    part(arrays.added, tile, d, kLanes)[at * kLanes + query] = added[query * kRow + j * kEight + lane];
    part(arrays.g, tile, d, kLanes)[at * kLanes + query] = mine.g(lane, j);
  }
  if (lane == 0) report(mine, arrays, tile, kLanes, query, mine.c(), rest);
}

}  // namespace
}  // namespace attsvm::internal::device

#define ATTSVM_SPLIT(TOKENS, SLICE)                                                                              \
  extern "C" __global__ void __launch_bounds__(256, 1) run_split_##TOKENS##_##SLICE(                             \
      attsvm::internal::device::LaneArrays arrays, long long runs, attsvm::internal::device::LaneRule rule,      \
      const attsvm::internal::device::StepSize* steps, int count, double number,                                 \
      attsvm::internal::device::AnySizes sizes) {                                                                \
    attsvm::internal::device::run_split<TOKENS, SLICE>(arrays, runs, rule, steps, count, number, sizes);         \
  }

ATTSVM_SPLIT(16, 4)
ATTSVM_SPLIT(20, 4)
