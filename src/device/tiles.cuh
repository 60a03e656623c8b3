#pragma once

#include "device/product_lane.h"

namespace attsvm::internal::device {

/// The part of an array with `size` numbers per query (or run) that belongs to a tile of `lanes` queries (or runs).
template <class Number>
__device__ __forceinline__ Number* part(Number* array, long long tile, int size, int lanes) {
  return array == nullptr ? nullptr : array + tile * size * lanes;
}

/// The same for an array that lanes only read, where a Board or Column holds it.
__device__ __forceinline__ double* part_read(const double* array, long long tile, int size, int lanes) {
  return const_cast<double*>(part(array, tile, size, lanes));
}

/// Writes what records need beside vectors.
template <class Query>
__device__ __forceinline__ void report(const Query& query, const LaneArrays& arrays, long long tile, int lanes,
                                       int lane, double c, double rest) {
  part(arrays.f, tile, 1, lanes)[lane] = query.f();
  part(arrays.c, tile, 1, lanes)[lane] = c;
  part(arrays.top, tile, 1, lanes)[lane] = query.top();
  part(arrays.rest, tile, 1, lanes)[lane] = rest;
}

}  // namespace attsvm::internal::device
