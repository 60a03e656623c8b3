// What a card can do at most: benchmarks compare the other kernels with it.

namespace attsvm::internal::device {

/// 16 chains of `count` multiply-adds in every thread: 32·count operations.
extern "C" __global__ void __launch_bounds__(256) limit_multiply(double* out, int count, double factor) {
  double x[16];
#pragma unroll
  for (int k = 0; k < 16; ++k) x[k] = threadIdx.x + k;
  for (int round = 0; round < count; ++round) {
#pragma unroll
    for (int k = 0; k < 16; ++k) x[k] = fma(x[k], factor, 1.0);
  }
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) sum += x[k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// Reads `count` pairs of numbers once, all threads side by side.
extern "C" __global__ void __launch_bounds__(256) limit_read(double* out, const double2* numbers, long long count) {
  double sum = 0;
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 8
  for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += threads) {
    const double2 pair = numbers[k];
    sum += pair.x + pair.y;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

}  // namespace attsvm::internal::device
