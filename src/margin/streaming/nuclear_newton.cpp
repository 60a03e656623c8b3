#include "margin/streaming/nuclear_newton.h"

#include <cmath>

#include "base/blas.h"
#include "base/conjugate_gradients.h"
#include "base/kernels/stream.h"

namespace attsvm::internal {
namespace {

constexpr Index kParts = 8;  // partial sums of W; fixed, so that rounding does not depend on the number of threads
constexpr Index kSlices = 16;
constexpr Index kIterationLimit = 80;
constexpr int kSweeps = 20;
constexpr double kPoorLength = 0.5;
constexpr double kLeastDamping = 1e-3;

}  // namespace

NuclearNewton::NuclearNewton(const ScaledProblem& problem, const WorkingRows& rows) : problem_(problem), rows_(rows) {
  const Index d = problem.d(), dz = problem.dz(), entries = d * dz;
  begin_.fill(problem.groups() + 1, 0);
  gram_begin_.fill(problem.groups() + 1, 0);
  left_.reserve(d * d);
  right_.reserve(dz * dz);
  for (auto* matrix : {&same_, &swapped_, &direction_W_, &turned_}) matrix->reserve(entries);
  part_W_.reserve(kParts * entries);
  queries_.reserve(problem.groups() * dz);
}

double NuclearNewton::find(const SingularSplit& split, double tau, double accuracy, double fine) {
  choose_face();
  take_slopes(split, tau);
  problem_.for_each_block([&](Index first, Index last) { turn_block(first, last); });
  solve_face(accuracy);
  return project_blocks(fine);
}

void NuclearNewton::took(double length, bool good) {
  if (length < kPoorLength) {
    damping_ = std::max(0.01, 4 * damping_);
  } else if (good) {
    damping_ = 0.3 * damping_ < kLeastDamping ? 0 : 0.3 * damping_;
  }
}

void NuclearNewton::choose_face() {
  const auto in_face = [&](Index k) { return rows_.equal(k) || rows_.lambda[k] > 0 || rows_.value[k] < rows_.rhs(k); };
  for (Index i = 0; i < problem_.groups(); ++i) {
    Index size = 0;
    for (Index k = rows_.begin(i); k < rows_.end(i); ++k) size += in_face(k) ? 1 : 0;
    begin_[i + 1] = begin_[i] + size;
    gram_begin_[i + 1] = gram_begin_[i] + size * size;
  }
  const Index size = begin_[problem_.groups()], numbers = size * problem_.d();
  member_.grow(size);
  move_.fill(rows_.size(), 0.0);
  for (auto* buffer : {&residual_, &preconditioned_, &direction_value_}) buffer->grow(size);
  for (auto* buffer : {&solution_, &solution_value_, &solution_damping_, &direction_, &direction_damping_}) {
    buffer->fill(size, 0.0);
  }
  if (numbers > deltas_.capacity()) deltas_.reserve(numbers + numbers / 4);
  const Index blocks = gram_begin_[problem_.groups()];
  for (auto* storage : {&gram_, &inverse_}) {
    if (blocks > storage->capacity()) storage->reserve(blocks + blocks / 2);
  }
  for (Index i = 0, f = 0; i < problem_.groups(); ++i) {
    for (Index k = rows_.begin(i); k < rows_.end(i); ++k) {
      if (!in_face(k)) continue;
      member_[f] = k;
      residual_[f++] = rows_.rhs(k) - rows_.value[k];
    }
  }
}

/// S′ at B in the singular bases. With f(s) = (s − τ)₊ the symmetric half of a pair of entries (i,j), (j,i) is
/// multiplied by (f(s_i) − f(s_j))/(s_i − s_j), the skew half by (f(s_i) + f(s_j))/(s_i + s_j). Times τ here.
void NuclearNewton::take_slopes(const SingularSplit& split, double tau) {
  const Index d = problem_.d(), dz = problem_.dz();
  rank_ = split.rank_above(tau);
  std::transform(split.left(), split.left() + d * d, left_.data(), [](double x) { return static_cast<float>(x); });
  std::transform(split.right(), split.right() + dz * dz, right_.data(), [](double x) { return static_cast<float>(x); });
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < dz; ++j) {
      double same = 0, swapped = 0;
      if (i < rank_ || j < rank_) {
        const double more = split.value(std::min(i, j)), less = split.value(std::max(i, j));
        const bool both = less > tau;
        const double symmetric = both ? 1 : (more - tau) / (more - less);
        const double skew = (more - tau + (both ? less - tau : 0)) / (more + less);
        same = tau * 0.5 * (symmetric + skew);
        swapped = i < dz && j < d ? tau * 0.5 * (symmetric - skew) : 0;
      }
      same_[i * dz + j] = static_cast<float>(same);
      swapped_[i * dz + j] = static_cast<float>(swapped);
    }
  }
}

/// Transforms the queries and face rows of a block to the singular bases, and forms its blocks of the preconditioner.
void NuclearNewton::turn_block(Index first, Index last) {
  thread_local std::vector<float> squares, weight, plain;
  const Index d = problem_.d(), dz = problem_.dz(), groups = last - first, size = begin(last) - begin(first);
  float* queries = queries_.data() + first * dz;
  gemm(false, true, groups, dz, dz, 1.0F, problem_.single_query(first), dz, right_.data(), dz, 0.0F, queries, dz);
  squares.resize(static_cast<std::size_t>(groups * dz));
  weight.resize(static_cast<std::size_t>(groups * d));
  std::transform(queries, queries + groups * dz, squares.begin(), [](float z) { return z * z; });
  gemm(false, true, groups, d, dz, 1.0F, squares.data(), dz, same_.data(), dz, 0.0F, weight.data(), d);
  plain.resize(static_cast<std::size_t>(size * d));
  for (Index i = first, at = 0; i < last; ++i) {
    for (Index f = begin(i); f < end(i); ++f, at += d) {
      std::copy_n(rows_.deltas(i) + (member_[f] - rows_.begin(i)) * d, d, plain.data() + at);
    }
  }
  if (size == 0) return;
  gemm(false, true, size, d, d, 1.0F, plain.data(), d, left_.data(), d, 0.0F, deltas_.data() + begin(first) * d, d);
  weigh_block(first, last, weight.data());
}

void NuclearNewton::weigh_block(Index first, Index last, const float* weight) {
  thread_local BlockScratch scratch;
  thread_local std::vector<float> weighted, products;
  thread_local std::vector<std::uint8_t> all;
  const Index d = problem_.d();
  for (Index i = first; i < last; ++i, weight += d) {
    const Index size = count(i);
    if (size == 0) continue;
    const float* deltas = deltas_.data() + begin(i) * d;
    double* K = gram_.data() + gram_begin_[i];
    weighted.resize(static_cast<std::size_t>(size * d));
    products.resize(static_cast<std::size_t>(size * size));
    for (Index e = 0; e < size; ++e) {
      for (Index j = 0; j < d; ++j) weighted[static_cast<std::size_t>(e * d + j)] = deltas[e * d + j] * weight[j];
    }
    gemm(false, true, size, size, d, 1.0F, weighted.data(), d, deltas, d, 0.0F, products.data(), size);
    for (Index e = 0; e < size; ++e) {
      for (Index c = 0; c <= e; ++c) {
        K[c * size + e] = K[e * size + c] = static_cast<double>(products[static_cast<std::size_t>(e * size + c)]);
      }
    }
    all.assign(static_cast<std::size_t>(size), 1);
    for (Index e = 0; e < size; ++e) {
      if (K[e * size + e] > 0) continue;  // W cannot move this row to first order
      all[static_cast<std::size_t>(e)] = 0;
      residual_[begin(i) + e] = 0;
    }
    invert_face_block(K, size, all.data(), scratch, inverse_.data() + gram_begin_[i]);
  }
}

void NuclearNewton::solve_face(double accuracy) {
  conjugate_gradients(
      kIterationLimit, accuracy, [&](double length) { return precondition(length); },
      [&](double share) { return apply(share); });
}

/// Moves by `length` along the direction, then preconditioned = M⁻¹ residual; returns their product.
double NuclearNewton::precondition(double length) {
  return problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index f = begin(first); length != 0 && f < begin(last); ++f) {
      solution_[f] += length * direction_[f];
      solution_value_[f] += length * direction_value_[f];
      solution_damping_[f] += length * direction_damping_[f];
      residual_[f] -= length * (direction_value_[f] + direction_damping_[f]);
    }
    for (Index i = first; i < last; ++i) {
      const Index size = count(i);
      const double* residual = residual_.data() + begin(i);
      double* out = preconditioned_.data() + begin(i);
      row_combination(inverse_.data() + gram_begin_[i], size, size, residual, out);
      for (Index e = 0; e < size; ++e) sum += residual[e] * out[e];
    }
    return sum;
  });
}

/// direction = preconditioned + share·direction and its products with the derivative; returns its curvature.
double NuclearNewton::apply(double share) {
  ++applications_;
  const Index parts = std::min(kParts, problem_.blocks());
  problem_.threads().for_each(parts, [&](Index part) { gather_part(part, parts, share); });
  differentiate();
  return problem_.sum_over_blocks([&](Index first, Index last) { return spread_block(first, last); });
}

void NuclearNewton::gather_part(Index part, Index parts, double share) {
  thread_local std::vector<float> mixed, single;
  const Index d = problem_.d(), dz = problem_.dz(), rest = d - rank_, entries = rank_ * dz + rest * rank_;
  const Index from = problem_.blocks() * part / parts, to = problem_.blocks() * (part + 1) / parts;
  float *top = part_W_.data() + part * entries, *below = top + rank_ * dz;
  mixed.resize(static_cast<std::size_t>(problem_.block_size() * d));
  for (Index block = from; block < to; ++block) {
    const Index first = problem_.block_begin(block), last = problem_.block_end(block);
    for (Index i = first; i < last; ++i) {
      single.resize(static_cast<std::size_t>(count(i)));
      for (Index f = begin(i); f < end(i); ++f) {
        direction_[f] = preconditioned_[f] + share * direction_[f];
        direction_damping_[f] = damping_ * residual_[f] + share * direction_damping_[f];  // M preconditioned = residual
        single[static_cast<std::size_t>(f - begin(i))] = static_cast<float>(direction_[f]);
      }
      row_combination(deltas_.data() + begin(i) * d, count(i), d, single.data(), mixed.data() + (i - first) * d);
    }
    const float* queries = queries_.data() + first * dz;
    const float more = block > from ? 1.0F : 0.0F;
    gemm(true, false, rank_, dz, last - first, 1.0F, mixed.data(), d, queries, dz, more, top, dz);
    if (rest > 0)
      gemm(true, false, rest, rank_, last - first, 1.0F, mixed.data() + rank_, d, queries, dz, more, below, rank_);
  }
}

/// turned = τS′(A(direction)), from the partial sums.
void NuclearNewton::differentiate() {
  const Index d = problem_.d(), dz = problem_.dz(), entries = rank_ * dz + (d - rank_) * rank_;
  const Index parts = std::min(kParts, problem_.blocks());
  Threads& threads = problem_.threads();
  threads.for_each(kSlices, [&](Index slice) {
    for (Index j = entries * slice / kSlices; j < entries * (slice + 1) / kSlices; ++j) {
      float sum = 0;
      for (Index part = 0; part < parts; ++part) sum += part_W_[part * entries + j];
      direction_W_[j] = sum;
    }
  });
  const float *top = direction_W_.data(), *below = top + rank_ * dz;
  threads.for_each(kSlices, [&](Index slice) {
    for (Index i = d * slice / kSlices; i < d * (slice + 1) / kSlices; ++i) {
      const float *same = same_.data() + i * dz, *swapped = swapped_.data() + i * dz;
      if (i < rank_) {
        float* out = turned_.data() + i * dz;
        for (Index j = 0; j < rank_; ++j) out[j] = same[j] * top[i * dz + j] + swapped[j] * top[j * dz + i];
        for (Index j = rank_; j < dz; ++j) {
          out[j] = same[j] * top[i * dz + j] + (j < d ? swapped[j] * below[(j - rank_) * rank_ + i] : 0);
        }
      } else {
        float* out = turned_.data() + rank_ * dz + (i - rank_) * rank_;
        for (Index j = 0; j < rank_; ++j) {
          out[j] = same[j] * below[(i - rank_) * rank_ + j] + (i < dz ? swapped[j] * top[j * dz + i] : 0);
        }
      }
    }
  });
}

/// direction_value of the block's rows; returns their share of the curvature.
double NuclearNewton::spread_block(Index first, Index last) {
  thread_local std::vector<float> projected, single;
  const Index d = problem_.d(), dz = problem_.dz(), rest = d - rank_;
  const float *queries = queries_.data() + first * dz, *top = turned_.data(), *below = top + rank_ * dz;
  projected.resize(static_cast<std::size_t>(problem_.block_size() * d));
  gemm(false, true, last - first, rank_, dz, 1.0F, queries, dz, top, dz, 0.0F, projected.data(), d);
  if (rest > 0)
    gemm(false, true, last - first, rest, rank_, 1.0F, queries, dz, below, rank_, 0.0F, projected.data() + rank_, d);
  double curvature = 0;
  for (Index i = first; i < last; ++i) {
    single.resize(static_cast<std::size_t>(count(i)));
    row_dots(deltas_.data() + begin(i) * d, count(i), d, projected.data() + (i - first) * d, single.data());
    for (Index f = begin(i); f < end(i); ++f) {
      direction_value_[f] = static_cast<double>(single[static_cast<std::size_t>(f - begin(i))]);
      curvature += direction_[f] * (direction_value_[f] + direction_damping_[f]);
    }
  }
  return curvature;
}

/// move = projection of λ + x minus λ. Returns the slope of the dual along it.
double NuclearNewton::project_blocks(double fine) {
  const double changes = problem_.sum_over_blocks([&](Index first, Index last) {
    Index changed = 0;
    for (Index i = first; i < last; ++i) project_block(i, fine);
    for (Index f = begin(first); f < begin(last); ++f) {
      const double before = rows_.lambda[member_[f]];
      changed += (before > 0) != (before + move_[member_[f]] > 0) ? 1 : 0;
    }
    return static_cast<double>(changed);
  });
  changed_ = changes / static_cast<double>(std::max<Index>(1, begin(problem_.groups())));
  return problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) sum += move_[k] * (rows_.rhs(k) - rows_.value[k]);
    return sum;
  });
}

/// If x makes multipliers of a query negative, solves its block of the damped model again with λ ≥ 0 and the moves of
/// the other queries fixed.
void NuclearNewton::project_block(Index i, double fine) {
  thread_local std::vector<double> gradient, lambda, low;
  const Index size = count(i);
  const double* K = gram_.data() + gram_begin_[i];
  gradient.resize(static_cast<std::size_t>(size));
  lambda.resize(static_cast<std::size_t>(size));
  low.resize(static_cast<std::size_t>(size));
  bool clipped = false;
  for (Index e = 0; e < size; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const Index f = begin(i) + e, k = member_[f];
    lambda[at] = rows_.lambda[k] + solution_[f];
    low[at] = rows_.low(i)[k - rows_.begin(i)];
    gradient[at] = (rows_.rhs(k) - rows_.value[k] - solution_value_[f] - solution_damping_[f]) / (1 + damping_);
    clipped = clipped || lambda[at] < low[at];
  }
  if (clipped) {
    for (Index e = 0; e < size; ++e) {
      double& multiplier = lambda[static_cast<std::size_t>(e)];
      if (multiplier >= low[static_cast<std::size_t>(e)]) continue;
      for (Index c = 0; c < size; ++c) gradient[static_cast<std::size_t>(c)] += multiplier * K[e * size + c];
      multiplier = 0;
    }
    ascend_block(K, size, low.data(), fine, kSweeps, gradient.data(), lambda.data());
  }
  for (Index e = 0; e < size; ++e) {
    const Index k = member_[begin(i) + e];
    move_[k] = lambda[static_cast<std::size_t>(e)] - rows_.lambda[k];
  }
}

}  // namespace attsvm::internal
