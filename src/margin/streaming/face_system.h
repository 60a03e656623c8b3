#pragma once

#include <algorithm>
#include <vector>

#include "base/conjugate_gradients.h"
#include "base/kernels/stream.h"
#include "base/limits.h"
#include "margin/streaming/face_blocks.h"
#include "margin/streaming/working_rows.h"

namespace attsvm::internal {

/// The equations of a Newton step on a face of the dual, with the damping of Levenberg and Marquardt:
/// (K + μM) x = b − (values of the rows). M are the blocks of K that belong to one query; they also precondition.
/// Conjugate gradients work in single precision, so that rounding costs steps; callers measure in double what they
/// take.
///
/// `Rows` are the rows of the system, in one block per query: begin(i), end(i), count(i), deltas(i), gram(i) and
/// gram_begin(i) as WorkingRows has them, and member(f), the number of row f among the working rows.
///
/// `Operator` is what K does between the rows: size() numbers stand for A(p), and
///   add(first, last, mixed, again, sum)   adds Σ δp zᵀ of the queries first … last−1 to a sum (again: or starts it),
///   respond(sum)                          takes A(p), and
///   spread(first, last, projected)        writes d numbers per query, whose products with its δ are the entries of Kp.
template <class Rows>
class FaceSystem {
 public:
  static constexpr Index kSlices = 16;  ///< of a matrix, for loops over its entries on several threads

  FaceSystem(const ScaledProblem& problem, const WorkingRows& working, const Rows& rows)
      : problem_(problem), working_(working), rows_(rows) {
    part_W_.reserve(wave() * parts() * problem.d() * problem.dz());
    direction_W_.reserve(problem.d() * problem.dz());
  }

  /// Makes room for `size` rows whose blocks have `gram_size` numbers, and starts from x = 0.
  void resize(Index size, Index gram_size);
  /// Whether row f is in the face, and what it misses.
  void set_row(Index f, bool in, double missing) {
    face_[f] = in ? 1 : 0;
    residual_[f] = in ? missing : 0;
  }
  bool has(Index f) const { return face_[f] != 0; }
  /// Inverts the block of query i on the face.
  void invert_block(Index i) {
    thread_local BlockScratch scratch;
    invert_face_block(rows_.gram(i), rows_.count(i), face_.data() + rows_.begin(i), scratch,
                      inverse_.data() + rows_.gram_begin(i));
  }
  /// Conjugate gradients until the residual has fallen by `accuracy`.
  template <class Operator>
  void solve(Index limit, double accuracy, Operator& K) {
    conjugate_gradients(
        limit, accuracy, [&](double length) { return precondition(length); },
        [&](double share) { return apply(share, K); });
  }
  /// move = λ + x minus λ on the rows of query i. If x makes multipliers negative, solves the block of the damped model
  /// again with λ ≥ 0 and the moves of the other queries fixed, to `fine` in the values of rows.
  void project_block(Index i, double fine, double* move) const;

  double damping() const { return damping_; }
  void set_damping(double damping) { damping_ = damping; }
  /// Raises the damping after a poor step and lowers it after a good one.
  void adapt_damping(bool poor, bool good) {
    if (poor) {
      damping_ = std::max(kFirstDamping, 4 * damping_);
    } else if (good) {
      damping_ = 0.3 * damping_ < kLeastDamping ? 0 : 0.3 * damping_;
    }
  }
  Index applications() const { return applications_; }  ///< products with K in all steps

 private:
  static constexpr Index kParts = 8;  // of sums: fixed, so that rounding does not depend on the number of threads
  /// Of the sum of a segment, and segments that are summed at a time.
  Index parts() const { return std::max<Index>(1, kParts / problem_.sums().all_segments()); }
  Index wave() const {
    return std::min(problem_.sums().segments(), std::max<Index>(kParts, problem_.threads().count()) / parts());
  }
  static constexpr int kSweeps = 20;                                   // of coordinate ascent on a block; by hand
  static constexpr double kFirstDamping = 0.01, kLeastDamping = 1e-3;  // by hand

  double precondition(double length);
  template <class Operator>
  double apply(double share, Operator& K);
  template <class Operator>
  void gather_part(Index segment, Index part, double share, Operator& K, float* sum);
  template <class Operator>
  void gather_segments(Index from, Index to, double share, Operator& K, float* sums);
  template <class Operator>
  double spread_block(Index first, Index last, Operator& K);

  const ScaledProblem& problem_;
  const WorkingRows& working_;
  const Rows& rows_;
  double damping_ = 0;
  Index applications_ = 0;
  Buffer<std::uint8_t> face_;
  Storage<double> inverse_;  // inverses of the blocks on the face
  // Conjugate gradients: x, Kx and μMx, the residual, M⁻¹ residual, the direction p, Kp, μMp
  Buffer<double> solution_, solution_value_, solution_damping_;
  Buffer<double> residual_, preconditioned_, direction_, direction_value_, direction_damping_;
  Storage<float> part_W_, direction_W_;
};

template <class Rows>
void FaceSystem<Rows>::resize(Index size, Index gram_size) {
  face_.grow(size);
  for (auto* buffer : {&residual_, &preconditioned_, &direction_value_}) buffer->grow(size);
  for (auto* buffer : {&solution_, &solution_value_, &solution_damping_, &direction_, &direction_damping_}) {
    buffer->fill(size, 0.0);
  }
  if (gram_size > inverse_.capacity()) inverse_.reserve(2 * gram_size);
}

/// Moves by `length` along the direction, then preconditioned = M⁻¹ residual; returns their product.
template <class Rows>
double FaceSystem<Rows>::precondition(double length) {
  return problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index f = rows_.begin(first); length != 0 && f < rows_.begin(last); ++f) {
      solution_[f] += length * direction_[f];
      solution_value_[f] += length * direction_value_[f];
      solution_damping_[f] += length * direction_damping_[f];
      if (has(f)) residual_[f] -= length * (direction_value_[f] + direction_damping_[f]);
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

/// direction = preconditioned + share·direction and its products with K, on all rows; returns its curvature.
template <class Rows>
template <class Operator>
double FaceSystem<Rows>::apply(double share, Operator& K) {
  ++applications_;
  const auto make = [&](Index from, Index to, float* sums) { gather_segments(from, to, share, K, sums); };
  problem_.sums().template matrix<float>(K.size(), wave(), problem_.threads(), make, direction_W_.data());
  K.respond(direction_W_.data());
  return problem_.sum_over_blocks([&](Index first, Index last) { return spread_block(first, last, K); });
}

/// A(direction) of some segments, one after another.
template <class Rows>
template <class Operator>
void FaceSystem<Rows>::gather_segments(Index from, Index to, double share, Operator& K, float* sums) {
  const Index size = K.size(), most = parts();
  problem_.threads().for_each((to - from) * most, [&](Index k) {
    gather_part(from + k / most, k % most, share, K, part_W_.data() + k * size);
  });
  problem_.threads().for_each(kSlices, [&](Index slice) {
    for (Index segment = from; segment < to; ++segment) {
      const Index used = std::min(most, problem_.first_block(segment + 1) - problem_.first_block(segment));
      const float* part_W = part_W_.data() + (segment - from) * most * size;
      for (Index j = size * slice / kSlices; j < size * (slice + 1) / kSlices; ++j) {
        float sum = 0;
        for (Index part = 0; part < used; ++part) sum += part_W[part * size + j];
        sums[(segment - from) * size + j] = sum;
      }
    }
  });
}

/// The part of A(direction) that comes from some blocks of a segment. The contribution of a query stays in the cache.
template <class Rows>
template <class Operator>
void FaceSystem<Rows>::gather_part(Index segment, Index part, double share, Operator& K, float* sum) {
  thread_local std::vector<float> mixed, single;
  const Index d = problem_.d();
  const Index all = problem_.first_block(segment), blocks = problem_.first_block(segment + 1) - all;
  const Index used = std::min(parts(), blocks);
  if (part >= used) return;
  const Index begin = all + blocks * part / used, end = all + blocks * (part + 1) / used;
  mixed.resize(static_cast<std::size_t>(problem_.block_size() * d));
  for (Index block = begin; block < end; ++block) {
    const Index first = problem_.block_begin(block), last = problem_.block_end(block);
    for (Index i = first; i < last; ++i) {
      single.resize(static_cast<std::size_t>(rows_.count(i)));
      for (Index f = rows_.begin(i); f < rows_.end(i); ++f) {
        direction_[f] = preconditioned_[f] + share * direction_[f];
        direction_damping_[f] = damping_ * residual_[f] + share * direction_damping_[f];  // M preconditioned = residual
        single[static_cast<std::size_t>(f - rows_.begin(i))] = static_cast<float>(direction_[f]);
      }
      row_combination(rows_.deltas(i), rows_.count(i), d, single.data(), mixed.data() + (i - first) * d);
    }
    K.add(first, last, mixed.data(), block > begin, sum);
  }
}

/// direction_value of the block's rows; returns their share of the curvature.
template <class Rows>
template <class Operator>
double FaceSystem<Rows>::spread_block(Index first, Index last, Operator& K) {
  thread_local std::vector<float> projected, single;
  const Index d = problem_.d();
  projected.resize(static_cast<std::size_t>(problem_.block_size() * d));
  K.spread(first, last, projected.data());
  double curvature = 0;
  for (Index i = first; i < last; ++i) {
    single.resize(static_cast<std::size_t>(rows_.count(i)));
    row_dots(rows_.deltas(i), rows_.count(i), d, projected.data() + (i - first) * d, single.data());
    for (Index f = rows_.begin(i); f < rows_.end(i); ++f) {
      direction_value_[f] = static_cast<double>(single[static_cast<std::size_t>(f - rows_.begin(i))]);
      curvature += direction_[f] * (direction_value_[f] + direction_damping_[f]);
    }
  }
  return curvature;
}

template <class Rows>
void FaceSystem<Rows>::project_block(Index i, double fine, double* move) const {
  thread_local Buffer<double> gradient, lambda, low;
  const Index begin = rows_.begin(i), count = rows_.count(i);
  const double* K = rows_.gram(i);
  for (auto* buffer : {&gradient, &lambda, &low}) buffer->grow(count);
  bool clipped = false;
  for (Index e = 0; e < count; ++e) {
    const Index f = begin + e, k = rows_.member(f);
    lambda[e] = working_.lambda[k] + solution_[f];
    low[e] = working_.equal(k) ? -kInfinity : 0;
    gradient[e] = (working_.rhs(k) - working_.value[k] - solution_value_[f] - solution_damping_[f]) / (1 + damping_);
    clipped = clipped || lambda[e] < low[e];
  }
  if (clipped) {
    for (Index e = 0; e < count; ++e) {
      if (lambda[e] >= low[e]) continue;
      for (Index c = 0; c < count; ++c) gradient[c] += lambda[e] * K[e * count + c];
      lambda[e] = 0;
    }
    ascend_block(K, count, low.data(), fine, kSweeps, gradient.data(), lambda.data());
  }
  for (Index e = 0; e < count; ++e) {
    const Index k = rows_.member(begin + e);
    move[k] = lambda[e] - working_.lambda[k];
  }
}

}  // namespace attsvm::internal
