// Many small runs of one shape that train W along its gradient, one thread per query. Launches are those of
// device_runs.cpp.

#include "device/tiles.cuh"

namespace attsvm::internal::device {
namespace {

/// Takes steps[0] … steps[count−1], which begin with step number `number`, and then finds the gradient. `wait` is called
/// where all lanes of the run have to meet.
template <class Sizes, class Wait>
__device__ __forceinline__ void take_steps(QueryLane<Sizes>& query, const LaneRule& rule, const StepSize* steps,
                                           int count, double number, double& rest, const Wait& wait) {
  for (int k = 0;; ++k) {
    query.look(rule);
    wait();
    query.weigh(rule);
    wait();
    query.spread();
    wait();
    if (k == count) return;
    const double square = query.square();
    if (!(square > 0) && rest < 0) rest = number + k;
    query.move(rule, square, __ldg(&steps[k].size));
  }
}

/// A warp is a tile: keys in registers, what queries share in shared memory.
template <int N, int T, int D>
__device__ __forceinline__ void run_fixed(const LaneArrays& arrays, long long runs, const LaneRule& rule,
                                          const StepSize* steps, int count, double number) {
  constexpr int kLanes = 32, kTiles = 4, kFit = kLanes / N;
  __shared__ double shared[kTiles][2 * D + T + N + 3][kLanes];
  const int lane = threadIdx.x % kLanes, first = lane / N * N;
  const long long tile = static_cast<long long>(blockIdx.x) * kTiles + threadIdx.x / kLanes;
  const bool used = first < kFit * N && tile * kFit + lane / N < runs;
  const unsigned others = __ballot_sync(~0U, used);
  if (!used) return;
  auto& rows = shared[threadIdx.x / kLanes];
  const Board board{rows[0],         rows[D],             rows[D + 1],         rows[D + 2],
                    rows[D + 3],     rows[D + 3 + T],     rows[D + 3 + T + N], kLanes};
  QueryLane<FixedSizes<N, T, D>> query({}, board, lane, first);
  const auto of = [&](const double* array, int size, int k) { return part(array, tile, size, kLanes)[k * kLanes + lane]; };
  query.seen = static_cast<int>(of(arrays.visible, 1, 0));
#pragma unroll
  for (int k = 0; k < T * D; ++k) query.x[k] = of(arrays.X, T * D, k);
  for (int t = 0; t < T; ++t) board.gamma[t * kLanes + lane] = of(arrays.gamma, T, t);
  for (int k = 0; k < N; ++k) board.gram[k * kLanes + lane] = of(arrays.gram, N, k);
#pragma unroll
  for (int j = 0; j < D; ++j) {
    query.u[j] = of(arrays.reach, D, j);
    board.added[j * kLanes + lane] = of(arrays.added, D, j);
  }
  double rest = of(arrays.rest, 1, 0);
  take_steps(query, rule, steps, count, number, rest, [&] { __syncwarp(others); });
#pragma unroll
  for (int j = 0; j < D; ++j) {
    part(arrays.reach, tile, D, kLanes)[j * kLanes + lane] = query.u[j];
    part(arrays.added, tile, D, kLanes)[j * kLanes + lane] = board.added[j * kLanes + lane];
    part(arrays.g, tile, D, kLanes)[j * kLanes + lane] = board.g[j * kLanes + lane];
  }
  report(query, arrays, tile, kLanes, lane, board.c[lane], rest);
}

}  // namespace

/// A block is a tile: every lane works on its columns in the card's memory.
extern "C" __global__ void __launch_bounds__(64) run_W_any(LaneArrays arrays, long long runs, LaneRule rule,
                                                           const StepSize* steps, int count, double number,
                                                           AnySizes sizes) {
  constexpr int kLanes = 64;
  __shared__ double exponent[kLanes], c[kLanes], sum[kLanes];
  const int lane = threadIdx.x, n = sizes.n, T = sizes.T, d = sizes.d, fit = kLanes / n;
  const long long tile = blockIdx.x;
  // Lanes without a query repeat what lane 0 does with columns of their own, so that all meet at every barrier.
  const long long run = tile * fit + lane / n;
  const bool used = lane < fit * n && run < runs;
  const Board board{part(arrays.g, tile, d, kLanes), exponent, c, sum, part_read(arrays.gamma, tile, T, kLanes),
                    part_read(arrays.gram, tile, n, kLanes), part(arrays.added, tile, d, kLanes), kLanes};
  const int first = used ? lane / n * n : lane;
  double* scratch = part(arrays.scratch, tile, T + d, kLanes) + lane;
  AnySizes own = sizes;
  if (!used) own.n = 0;
  QueryLane<AnySizes> query(own, board, lane, first);
  query.x = {part_read(arrays.X, tile, T * d, kLanes) + lane, kLanes};
  query.u = {part(arrays.reach, tile, d, kLanes) + lane, kLanes};
  query.a = {scratch, kLanes};
  query.change = {scratch + T * kLanes, kLanes};
  query.seen = static_cast<int>(part(arrays.visible, tile, 1, kLanes)[lane]);
  double rest = part(arrays.rest, tile, 1, kLanes)[lane];
  take_steps(query, rule, steps, count, number, rest, [] { __syncthreads(); });
  report(query, arrays, tile, kLanes, lane, c[lane], rest);
}

}  // namespace attsvm::internal::device

#define ATTSVM_SHAPE(N, T, D)                                                                               \
  extern "C" __global__ void __launch_bounds__(128, 2)                                                      \
      run_W_##N##_##T##_##D(attsvm::internal::device::LaneArrays arrays, long long runs,                    \
                            attsvm::internal::device::LaneRule rule,                                        \
                            const attsvm::internal::device::StepSize* steps, int count, double number) {    \
    attsvm::internal::device::run_fixed<N, T, D>(arrays, runs, rule, steps, count, number);                 \
  }

#include "device/shapes.h"
