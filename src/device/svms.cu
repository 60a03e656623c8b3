// Many small Frobenius SVMs, one warp each. Launches are those of margin/device/solves.cpp.

#include "device/svm.h"

namespace attsvm::internal::device {

#define ATTSVM_SVMS(ROUNDS, BLOCKS)                                                                      \
  extern "C" __global__ void __launch_bounds__(kTeam, BLOCKS) solve_svms_##ROUNDS(const SvmBatch batch) { \
    extern __shared__ double memory[];                                                                   \
    solve_one<ROUNDS>(WarpTeam(), batch, blockIdx.x, memory);                                            \
  }

ATTSVM_SVMS(1, 24)
ATTSVM_SVMS(2, 20)
ATTSVM_SVMS(3, 8)
ATTSVM_SVMS(4, 8)

}  // namespace attsvm::internal::device
