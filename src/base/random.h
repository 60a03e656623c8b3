#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace attsvm::internal {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): maps 128 counter bits and 64 key bits to 128 random bits.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Random numbers as a function of (seed, instance, stream, position) alone. Any of them can be computed without those
/// before it, on any thread, with the same bits on every machine.
class Random {
 public:
  /// `instance` distinguishes the draws of a sweep, `stream` the arrays of one draw.
  Random(std::uint64_t seed, std::uint32_t instance, std::uint32_t stream);

  std::uint64_t bits(std::uint64_t position) const;
  double uniform(std::uint64_t position) const;  ///< in (0,1): (k + ½)·2^-53 for a whole k
  double normal(std::uint64_t position) const;   ///< mean 0, variance 1
  /// 0 … bound−1, bound ≥ 1; bias below bound/2^64.
  std::uint64_t below(std::uint64_t bound, std::uint64_t position) const;

  /// out[k] = normal(first + k)
  void normals(std::span<double> out, std::uint64_t first = 0) const;

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t index) const;

  std::array<std::uint32_t, 2> key_;
  std::uint32_t instance_, stream_;
};

/// Quantile of the standard normal distribution, 0 < p < 1, to 16 digits (Wichura, algorithm AS 241). Uses only
/// +, −, ·, / and sqrt, which IEEE arithmetic rounds the same everywhere; std::log differs between libraries.
double normal_quantile(double p);

}  // namespace attsvm::internal
