#include "margin/streaming/face_newton.h"

#include <cmath>
#include <limits>

#include "base/blas.h"
#include "base/conjugate_gradients.h"
#include "base/kernels/stream.h"

namespace attsvm::internal {
namespace {

constexpr Index kParts = 8;  // partial sums of W; fixed, so that rounding does not depend on the number of threads
constexpr Index kIterationLimit = 60;
constexpr int kSweeps = 20;
constexpr double kGoodLength = 0.8;  // exact step length from which the damping falls
constexpr double kLeastDamping = 1e-3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

FaceNewton::FaceNewton(const ScaledProblem& problem, WorkingRows& rows) : problem_(problem), rows_(rows) {
  const Index entries = problem.d() * problem.dz();
  direction_W_.reserve(entries);
  part_W_.reserve(kParts * entries);
  move_W_.reserve(entries);
}

void FaceNewton::step(double accuracy, double fine, double* W) {
  prepare();
  solve_face(accuracy);
  double longest = kInfinity;
  const double slope = project_blocks(fine, longest);
  rows_.weigh(move_.data(), move_W_.data());
  const Index entries = problem_.d() * problem_.dz();
  const double norm = ConstVector(move_W_.data(), entries).norm(), ideal = slope / (norm * norm);
  double length = norm > 0 ? std::clamp(ideal, 0.0, longest) : 0;
  if (length > 0.5 && length < 1) length = 1;  // the full step meets the rows of the face, at a small loss
  if (!(length >= poor_length_)) {
    damping_ = std::max(0.01, 4 * damping_);
  } else if (ideal > kGoodLength) {
    damping_ = 0.3 * damping_ < kLeastDamping ? 0 : 0.3 * damping_;
  }
  advance(length);
  for (Index j = 0; j < entries; ++j) W[j] += length * move_W_[j];
}

/// Computes the face at the present point, the inverses of its blocks, and the residual of x = 0.
void FaceNewton::prepare() {
  const Index size = rows_.size();
  for (auto* buffer : {&residual_, &preconditioned_, &direction_value_, &move_}) buffer->grow(size);
  for (auto* buffer : {&solution_, &solution_value_, &solution_damping_, &direction_, &direction_damping_}) {
    buffer->fill(size, 0.0);
  }
  face_.grow(size);
  if (rows_.gram_size() > inverse_.capacity()) inverse_.reserve(2 * rows_.gram_size());
  problem_.for_each_block([&](Index first, Index last) {
    thread_local BlockScratch scratch;
    for (Index i = first; i < last; ++i) {
      const Index count = rows_.count(i), begin = rows_.begin(i);
      const double* K = rows_.gram(i);
      for (Index e = 0; e < count; ++e) {
        const Index k = begin + e;
        const double wanted = rows_.rhs(k) - rows_.value[k];
        const bool in = rows_.equal(k) || rows_.lambda[k] > 0 || wanted > 0;
        face_[k] = in && K[e * count + e] > 0 ? 1 : 0;  // a zero row has the same value for every W
        residual_[k] = face_[k] != 0 ? wanted : 0;
      }
      invert_face_block(K, count, face_.data() + begin, scratch, inverse_.data() + rows_.gram_begin(i));
    }
  });
}

void FaceNewton::solve_face(double accuracy) {
  conjugate_gradients(
      kIterationLimit, accuracy, [&](double length) { return precondition(length); },
      [&](double share) { return apply(share); });
}

/// Moves by `length` along the direction, then preconditioned = M⁻¹ residual; returns their product.
double FaceNewton::precondition(double length) {
  return problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index k = rows_.begin(first); length != 0 && k < rows_.begin(last); ++k) {
      solution_[k] += length * direction_[k];
      solution_value_[k] += length * direction_value_[k];
      solution_damping_[k] += length * direction_damping_[k];
      if (face_[k] != 0) residual_[k] -= length * (direction_value_[k] + direction_damping_[k]);
    }
    for (Index i = first; i < last; ++i) {
      const Index count = rows_.count(i);
      const double* residual = residual_.data() + rows_.begin(i);
      double* out = preconditioned_.data() + rows_.begin(i);
      row_combination(inverse_.data() + rows_.gram_begin(i), count, count, residual, out);
      for (Index e = 0; e < count; ++e) sum += residual[e] * out[e];
    }
    return sum;
  });
}

/// direction = preconditioned + share·direction and its products with K, on all working rows; returns its curvature.
double FaceNewton::apply(double share) {
  ++applications_;
  gather(share);
  return problem_.sum_over_blocks([&](Index first, Index last) { return spread_block(first, last); });
}

/// direction_W = A(direction) in single precision. The contribution of a query stays in the cache.
void FaceNewton::gather(double share) {
  const Index entries = problem_.d() * problem_.dz(), parts = std::min(kParts, problem_.blocks());
  Threads& threads = problem_.threads();
  threads.for_each(parts, [&](Index part) { gather_part(part, parts, share); });
  constexpr Index kSlices = 16;
  threads.for_each(kSlices, [&](Index slice) {
    for (Index j = entries * slice / kSlices; j < entries * (slice + 1) / kSlices; ++j) {
      float sum = 0;
      for (Index part = 0; part < parts; ++part) sum += part_W_[part * entries + j];
      direction_W_[j] = sum;
    }
  });
}

void FaceNewton::gather_part(Index part, Index parts, double share) {
  thread_local std::vector<float> mixed, single;
  const Index d = problem_.d(), dz = problem_.dz(), entries = d * dz;
  const Index begin = problem_.blocks() * part / parts, end = problem_.blocks() * (part + 1) / parts;
  mixed.resize(static_cast<std::size_t>(problem_.block_size() * d));
  for (Index block = begin; block < end; ++block) {
    const Index first = problem_.block_begin(block), last = problem_.block_end(block);
    for (Index i = first; i < last; ++i) {
      single.resize(static_cast<std::size_t>(rows_.count(i)));
      for (Index k = rows_.begin(i); k < rows_.end(i); ++k) {
        direction_[k] = preconditioned_[k] + share * direction_[k];
        direction_damping_[k] = damping_ * residual_[k] + share * direction_damping_[k];  // M preconditioned = residual
        single[static_cast<std::size_t>(k - rows_.begin(i))] = static_cast<float>(direction_[k]);
      }
      row_combination(rows_.deltas(i), rows_.count(i), d, single.data(), mixed.data() + (i - first) * d);
    }
    gemm(true, false, d, dz, last - first, 1.0F, mixed.data(), d, problem_.single_query(first), dz,
         block > begin ? 1.0F : 0.0F, part_W_.data() + part * entries, dz);
  }
}

/// direction_value of the block's rows; returns their share of the curvature.
double FaceNewton::spread_block(Index first, Index last) {
  thread_local std::vector<float> projected, single;
  const Index d = problem_.d(), dz = problem_.dz();
  projected.resize(static_cast<std::size_t>(problem_.block_size() * d));
  gemm(false, true, last - first, d, dz, 1.0F, problem_.single_query(first), dz, direction_W_.data(), dz, 0.0F,
       projected.data(), d);
  double curvature = 0;
  for (Index i = first; i < last; ++i) {
    single.resize(static_cast<std::size_t>(rows_.count(i)));
    row_dots(rows_.deltas(i), rows_.count(i), d, projected.data() + (i - first) * d, single.data());
    for (Index k = rows_.begin(i); k < rows_.end(i); ++k) {
      direction_value_[k] = single[static_cast<std::size_t>(k - rows_.begin(i))];
      curvature += direction_[k] * (direction_value_[k] + direction_damping_[k]);
    }
  }
  return curvature;
}

/// move = projection of λ + x minus λ. Returns the slope of the dual along it; `longest` is the step that keeps λ ≥ 0.
double FaceNewton::project_blocks(double fine, double& longest) {
  std::vector<double> bounds(static_cast<std::size_t>(problem_.blocks()), kInfinity);
  const double slope = problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    double& bound = bounds[static_cast<std::size_t>(first / problem_.block_size())];
    for (Index i = first; i < last; ++i) project_block(i, fine);
    for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) {
      sum += move_[k] * (rows_.rhs(k) - rows_.value[k]);
      if (move_[k] < 0 && !rows_.equal(k)) bound = std::min(bound, -rows_.lambda[k] / move_[k]);
    }
    return sum;
  });
  longest = *std::min_element(bounds.begin(), bounds.end());
  return slope;
}

/// If x makes multipliers of a query negative, solves its block of the damped model again with λ ≥ 0 and the moves of
/// the other queries fixed.
void FaceNewton::project_block(Index i, double fine) {
  thread_local std::vector<double> gradient, lambda;
  const Index begin = rows_.begin(i), count = rows_.count(i);
  const double *K = rows_.gram(i), *low = rows_.low(i);
  gradient.resize(static_cast<std::size_t>(count));
  lambda.resize(static_cast<std::size_t>(count));
  bool clipped = false;
  for (Index e = 0; e < count; ++e) {
    const Index k = begin + e;
    lambda[static_cast<std::size_t>(e)] = rows_.lambda[k] + solution_[k];
    clipped = clipped || lambda[static_cast<std::size_t>(e)] < low[e];
  }
  if (clipped) {
    for (Index e = 0; e < count; ++e) {
      const Index k = begin + e;
      gradient[static_cast<std::size_t>(e)] =
          (rows_.rhs(k) - rows_.value[k] - solution_value_[k] - solution_damping_[k]) / (1 + damping_);
    }
    for (Index e = 0; e < count; ++e) {
      double& multiplier = lambda[static_cast<std::size_t>(e)];
      if (multiplier >= low[e]) continue;
      for (Index c = 0; c < count; ++c) gradient[static_cast<std::size_t>(c)] += multiplier * K[e * count + c];
      multiplier = 0;
    }
    ascend_block(K, count, low, fine, kSweeps, gradient.data(), lambda.data());
  }
  for (Index e = 0; e < count; ++e) move_[begin + e] = lambda[static_cast<std::size_t>(e)] - rows_.lambda[begin + e];
}

void FaceNewton::advance(double length) {
  const auto share_of = [&](auto counts) {
    return problem_.sum_over_blocks([&](Index first, Index last) {
      Index count = 0;
      for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) count += counts(k) ? 1 : 0;
      return static_cast<double>(count);
    });
  };
  const double face = share_of([&](Index k) { return face_[k] != 0; });
  const double changes = share_of([&](Index k) {
    const bool before = rows_.lambda[k] > 0;
    rows_.lambda[k] += length * move_[k];
    if (!rows_.equal(k)) rows_.lambda[k] = std::max(0.0, rows_.lambda[k]);
    return before != (rows_.lambda[k] > 0);
  });
  changed_ = changes / std::max(1.0, face);
}

}  // namespace attsvm::internal
