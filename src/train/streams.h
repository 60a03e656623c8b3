#pragma once

#include <cstdint>

namespace attsvm::internal {

/// Random streams of a run, distinct from those of the generators. These numbers must never change, or seeds would give
/// other runs.
enum TrainStream : std::uint32_t {
  kStartLeft = 100,   // W or K
  kStartRight = 101,  // Q
  kBatches = 102,
  kDropout = 103,
  kGumbel = 110,
  kDirichlet = 111,
  kHeadValues = kGumbel,  // the v's of many heads, which are trained without such noise
  kStackStart = 120,      // W of a stack
  kStackValues = 121,     // V of a stack
  kStackReads = 122,      // A of its MLPs
  kStackWrites = 123,     // B of its MLPs
};

}  // namespace attsvm::internal
