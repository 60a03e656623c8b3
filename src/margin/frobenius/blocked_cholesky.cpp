#include "margin/frobenius/blocked_cholesky.h"

#include <algorithm>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

constexpr Index kPanel = 128, kTile = 64;  // columns and rows of the pieces that threads take; by hand

}  // namespace

bool blocked_cholesky(Index n, double* A, Threads& threads) {
  for (Index k = 0; k < n; k += kPanel) {
    const Index width = std::min(kPanel, n - k), below = k + width, tiles = (n - below + kTile - 1) / kTile;
    double* pivot = A + k * (n + 1);
    if (!cholesky(width, pivot, n)) return false;
    threads.for_each(tiles, [&](Index tile) {
      const Index row = below + tile * kTile;
      divide_by_transposed_lower(std::min(kTile, n - row), width, pivot, n, A + row * n + k, n);
    });
    threads.for_each(tiles, [&](Index tile) {  // the longest first
      const Index row = below + (tiles - 1 - tile) * kTile, height = std::min(kTile, n - row);
      gemm(false, true, height, row + height - below, width, -1, A + row * n + k, n, A + below * n + k, n, 1,
           A + row * n + below, n);
    });
  }
  return true;
}

}  // namespace attsvm::internal
