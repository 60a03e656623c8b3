#pragma once

// The threads that work on one problem, in two forms: a warp of a GPU, and a loop on the host, for tests. Code that is
// written against this interface gives the same bits in both. Work is cut into loops whose turns do not read what other
// turns of the same loop write; sums are taken in the same order everywhere.

#include "device/lane.h"

namespace attsvm::internal::device {

#ifdef __CUDACC__
#define ATTSVM_ROLLED _Pragma("unroll 1")
#define ATTSVM_PAIRED _Pragma("unroll 2")
#else
#define ATTSVM_ROLLED
#define ATTSVM_PAIRED
#endif

constexpr int kTeam = 32;

struct LoopTeam {
  /// One value of every lane for each of `kCount` rounds: row 32·round + lane of a problem.
  template <class Number, int kCount>
  struct Held {
    Number at[static_cast<unsigned>(kCount)][static_cast<unsigned>(kTeam)] = {};
    Number& of(int round, int lane) { return at[round][lane]; }
  };

  /// Calls body(k) for k = 0 … count−1, and meets the others.
  template <class Body>
  void each(int count, const Body& body) const {
    for (int k = 0; k < count; ++k) body(k);
  }
  /// Calls body(i, j) for the entries of a matrix.
  template <class Body>
  void each(int rows, int columns, const Body& body) const {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) body(i, j);
  }
  /// Calls take(i, j, value(i, j)) for the entries of a matrix, where value reads slow memory.
  template <class Value, class Take>
  void fetch(int rows, int columns, const Value& value, const Take& take) const {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) take(i, j, value(i, j));
  }
  /// Calls body(i, j) for the entries of a matrix with j ≤ i.
  template <class Body>
  void triangle(int rows, const Body& body) const {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j <= i; ++j) body(i, j);
  }
  /// What the lanes did so far is done, for all to see.
  void meet() const {}
  /// Calls body(lane) once for every lane, without meeting the others.
  template <class Body>
  void lanes(const Body& body) const {
    for (int lane = 0; lane < kTeam; ++lane) body(lane);
  }
  /// value(lane), which all get.
  template <class Value>
  auto from(int lane, const Value& value) const {
    return value(lane);
  }
  template <class Test>
  bool any(const Test& test) const {
    bool found = false;
    for (int lane = 0; lane < kTeam; ++lane) found = test(lane) || found;
    return found;
  }
  template <class Value>
  double sum(int count, const Value& value) const {
    double parts[static_cast<unsigned>(kTeam)] = {};
    for (int k = 0; k < count; ++k) parts[k % kTeam] += value(k);
    for (int half = kTeam / 2; half > 0; half /= 2) {  // as shuffles along a butterfly pair them
      for (int lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
    }
    return parts[0];
  }
  /// The largest value(k) ≥ 0; NaN counts as 0.
  template <class Value>
  double largest(int count, const Value& value) const {
    double top = 0;
    for (int k = 0; k < count; ++k) top = fmax(top, value(k));
    return top;
  }
  /// Writes the k with test(k) in ascending order, and returns how many they are.
  template <class Test>
  int list(int count, int* to, const Test& test) const {
    int found = 0;
    for (int k = 0; k < count; ++k) {
      if (test(k)) to[found++] = k;
    }
    return found;
  }
};

#ifdef __CUDACC__
struct WarpTeam {
  __device__ __forceinline__ static int mine() { return static_cast<int>(threadIdx.x); }

  template <class Number, int kCount>
  struct Held {
    Number at[kCount] = {};
    __device__ __forceinline__ Number& of(int round, int) { return at[round]; }
  };

  template <class Body>
  __device__ __forceinline__ void each(int count, const Body& body) const {
    ATTSVM_ROLLED for (int k = mine(); k < count; k += kTeam) body(k);
    __syncwarp();
  }
  template <class Body>
  __device__ __forceinline__ void each(int rows, int columns, const Body& body) const {
    const int down = kTeam / columns, right = kTeam % columns;
    int i = mine() / columns, j = mine() % columns;
    ATTSVM_ROLLED while (i < rows) {
      body(i, j);
      i += down;
      j += right;
      if (j >= columns) ++i, j -= columns;
    }
    __syncwarp();
  }
  template <class Value, class Take>
  __device__ __forceinline__ void fetch(int rows, int columns, const Value& value, const Take& take) const {
    constexpr int kAtOnce = 8;  // so that the loads wait together
    const int down = kTeam / columns, right = kTeam % columns;
    int i = mine() / columns, j = mine() % columns;
    ATTSVM_ROLLED while (i < rows) {
      double values[kAtOnce];
      int ahead_i = i, ahead_j = j;
      const auto step = [&](int& a, int& b) {
        a += down;
        b += right;
        if (b >= columns) ++a, b -= columns;
      };
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (ahead_i < rows) values[k] = value(ahead_i, ahead_j);
        step(ahead_i, ahead_j);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (i < rows) take(i, j, values[k]);
        step(i, j);
      }
    }
    __syncwarp();
  }
  template <class Body>
  __device__ __forceinline__ void triangle(int rows, const Body& body) const {
    int i = 0, j = mine();
    while (true) {
      ATTSVM_ROLLED while (j > i) j -= ++i;
      if (i >= rows) break;
      body(i, j);
      j += kTeam;
    }
    __syncwarp();
  }
  __device__ __forceinline__ void meet() const { __syncwarp(); }
  template <class Body>
  __device__ __forceinline__ void lanes(const Body& body) const {
    body(mine());
  }
  template <class Value>
  __device__ __forceinline__ auto from(int lane, const Value& value) const {
    return __shfl_sync(~0U, value(mine()), lane);
  }
  template <class Test>
  __device__ __forceinline__ bool any(const Test& test) const {
    return __any_sync(~0U, test(mine())) != 0;
  }
  template <class Value>
  __device__ __forceinline__ double sum(int count, const Value& value) const {
    double part = 0;
    ATTSVM_ROLLED for (int k = mine(); k < count; k += kTeam) part += value(k);
    for (int half = kTeam / 2; half > 0; half /= 2) part += __shfl_xor_sync(~0U, part, half);
    return part;
  }
  template <class Value>
  __device__ __forceinline__ double largest(int count, const Value& value) const {
    double top = 0;
    ATTSVM_ROLLED for (int k = mine(); k < count; k += kTeam) top = fmax(top, value(k));
    for (int half = kTeam / 2; half > 0; half /= 2) top = fmax(top, __shfl_xor_sync(~0U, top, half));
    return top;
  }
  template <class Test>
  __device__ __forceinline__ int list(int count, int* to, const Test& test) const {
    int found = 0;
    ATTSVM_ROLLED for (int first = 0; first < count; first += kTeam) {
      const int k = first + mine();
      const bool in = k < count && test(k);
      const unsigned all = __ballot_sync(~0U, in);
      if (in) to[found + __popc(all & ((1U << mine()) - 1))] = k;
      found += __popc(all);
    }
    __syncwarp();
    return found;
  }
};
#endif

}  // namespace attsvm::internal::device
