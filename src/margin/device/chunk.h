#pragma once

#include <span>
#include <vector>

#include "attsvm/margin.h"
#include "device/svm.h"

namespace attsvm::internal {

/// How much of its memory a GPU sets aside for the rows that carry an answer.
enum class RoomForAnswer : std::uint8_t {
  usual,  ///< for seven tenths of the rows, unless that gains nothing: more problems are solved at a time
  full,   ///< for as many as there can be
};

/// The sizes of a problem, if the kernel for small problems takes it with this many bytes of shared memory; else there
/// are no rows.
device::SvmShape device_shape(const MarginProblem& problem, std::size_t shared, RoomForAnswer room);

/// Problems that a GPU solves at a time, in the arrays of device::SvmBatch.
class SvmChunk {
 public:
  /// For problems of at most this many rows, in multiples of a team.
  explicit SvmChunk(int rounds) : rounds_(rounds) {}

  void add(std::size_t problem, const device::SvmShape& shape);

  int rounds() const { return rounds_; }
  std::span<const std::size_t> problems() const { return problems_; }  ///< their places among all
  const device::SvmShape& shape(std::size_t k) const { return places_[k].shape; }
  std::size_t shared_bytes() const { return shared_; }  ///< that the largest needs within a block
  std::size_t input_bytes() const;
  std::size_t answer_bytes() const { return static_cast<std::size_t>(answers_) * sizeof(double); }

  /// Writes all that the GPU reads to `input`, in which numbers are aligned.
  void write(std::span<const MarginProblem> all, Threads& threads, std::byte* input) const;
  /// What the kernel gets, where `input` is that memory as the kernel sees it.
  device::SvmBatch batch(const std::byte* input, double* answers, double enough) const;
  /// Of problem k, in the memory of all answers.
  const double* answer(std::size_t k, const std::byte* answers) const {
    return reinterpret_cast<const double*>(answers) + places_[k].answer;
  }
  /// What the kernel says of it.
  static double fact(const MarginProblem& problem, const double* answer, device::SvmFact which) {
    return answer[problem.d() * problem.dz() + problem.rows() + which];
  }

 private:
  std::size_t places_at() const { return static_cast<std::size_t>(numbers_) * sizeof(double); }
  std::size_t starts_at() const { return places_at() + places_.size() * sizeof(device::SvmPlace); }

  int rounds_;
  std::vector<std::size_t> problems_;
  std::vector<device::SvmPlace> places_;
  long long numbers_ = 0, starts_ = 0, answers_ = 0;  // lengths of the arrays
  std::size_t shared_ = 0;
};

}  // namespace attsvm::internal
