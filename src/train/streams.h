#pragma once

#include <cstdint>

namespace attsvm {

/// Random streams of a run, apart from those of the generators; a number never changes its meaning.
enum TrainStream : std::uint32_t {
  kStartLeft = 100,   // W or K
  kStartRight = 101,  // Q
  kBatches = 102,
  kDropout = 103,
};

}  // namespace attsvm
