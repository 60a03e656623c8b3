#include "margin/device/chunk.h"

#include <algorithm>

namespace attsvm::internal {
namespace {

constexpr std::size_t kWritten = 64;  // problems that a thread writes at a time
constexpr std::size_t kSmall = 9000;  // bytes of shared memory below which registers limit how many run at a time

void write_numbers(const MarginProblem& problem, double* to) {
  const Index d = problem.d();
  for (const MarginGroup& group : problem.groups()) {
    const ConstVector keep(group.X + group.keep * d, d);
    for (const Index drop : problem.drops(group)) {
      Eigen::Map<Eigen::VectorXd> delta(to, d);  // as row_difference, but vectorised
      if (drop < 0) {
        delta = group.sign * keep;
      } else {
        delta = keep - ConstVector(group.X + drop * d, d);
      }
      to += d;
    }
  }
  for (const MarginGroup& group : problem.groups()) to = std::copy_n(group.z, problem.dz(), to);
}

}  // namespace

device::SvmShape device_shape(const MarginProblem& problem, std::size_t shared, RoomForAnswer room) {
  if (!problem.all_positive() || problem.rows() == 0 || problem.rows() > device::kMostRows) return {};
  const double largest = static_cast<double>(shared) / sizeof(double);
  if (static_cast<double>(problem.d()) * static_cast<double>(problem.dz()) > largest) return {};
  device::SvmShape shape{static_cast<int>(problem.rows()), static_cast<int>(problem.groups().size()),
                         static_cast<int>(problem.d()), static_cast<int>(problem.dz()),
                         static_cast<int>(std::min(problem.rows(), problem.d() * problem.dz()))};
  const auto bytes = [&] { return static_cast<std::size_t>(device::SvmRoom(shape).end) * sizeof(double); };
  if (room == RoomForAnswer::usual && bytes() > kSmall) shape.most = std::min(shape.most, 7 * shape.rows / 10);
  return bytes() <= shared ? shape : device::SvmShape{};
}

void SvmChunk::add(std::size_t problem, const device::SvmShape& shape) {
  problems_.push_back(problem);
  places_.push_back({shape, numbers_, starts_, answers_});
  numbers_ += static_cast<long long>(shape.rows) * shape.d + static_cast<long long>(shape.groups) * shape.dz;
  starts_ += shape.groups + 1;
  answers_ += device::answer_size(shape);
  shared_ = std::max(shared_, static_cast<std::size_t>(device::SvmRoom(shape).end) * sizeof(double));
}

std::size_t SvmChunk::input_bytes() const { return starts_at() + static_cast<std::size_t>(starts_) * sizeof(int); }

void SvmChunk::write(std::span<const MarginProblem> all, Threads& threads, std::byte* input) const {
  std::copy(places_.begin(), places_.end(), reinterpret_cast<device::SvmPlace*>(input + places_at()));
  const std::size_t portions = (problems_.size() + kWritten - 1) / kWritten;
  threads.for_each(static_cast<std::int64_t>(portions), [&](std::int64_t portion) {
    const std::size_t first = static_cast<std::size_t>(portion) * kWritten;
    for (std::size_t k = first; k < std::min(problems_.size(), first + kWritten); ++k) {
      const MarginProblem& problem = all[problems_[k]];
      write_numbers(problem, reinterpret_cast<double*>(input) + places_[k].numbers);
      int* starts = reinterpret_cast<int*>(input + starts_at()) + places_[k].starts;
      for (const MarginGroup& group : problem.groups()) *starts++ = static_cast<int>(group.first_row);
      *starts = places_[k].shape.rows;
    }
  });
}

device::SvmBatch SvmChunk::batch(const std::byte* input, double* answers, double enough) const {
  return {reinterpret_cast<const device::SvmPlace*>(input + places_at()), reinterpret_cast<const double*>(input),
          reinterpret_cast<const int*>(input + starts_at()), answers, enough};
}

}  // namespace attsvm::internal
