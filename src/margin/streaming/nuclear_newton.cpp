#include "margin/streaming/nuclear_newton.h"

#include <cmath>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kIterationLimit = 80;  // of conjugate gradients
constexpr double kPoorLength = 0.5;    // below this the damping rises

}  // namespace

struct NuclearNewton::Derivative {
  NuclearNewton& at;

  Index rest() const { return at.problem_.d() - at.rank_; }
  Index top() const { return at.rank_ * at.problem_.dz(); }  ///< numbers in the top rows
  Index size() const { return top() + rest() * at.rank_; }
  void add(Index first, Index last, const float* mixed, bool again, float* sum) const {
    const Index d = at.problem_.d(), dz = at.problem_.dz(), rank = at.rank_;
    const float* queries = at.queries_.data() + first * dz;
    const float more = again ? 1.0F : 0.0F;
    gemm(true, false, rank, dz, last - first, 1.0F, mixed, d, queries, dz, more, sum, dz);
    if (rest() == 0) return;
    gemm(true, false, rest(), rank, last - first, 1.0F, mixed + rank, d, queries, dz, more, sum + top(), rank);
  }
  void respond(const float* sum) const { at.differentiate(sum); }
  void spread(Index first, Index last, float* projected) const {
    const Index d = at.problem_.d(), dz = at.problem_.dz(), rank = at.rank_;
    const float *queries = at.queries_.data() + first * dz, *turned = at.turned_.data();
    gemm(false, true, last - first, rank, dz, 1.0F, queries, dz, turned, dz, 0.0F, projected, d);
    if (rest() == 0) return;
    gemm(false, true, last - first, rest(), rank, 1.0F, queries, dz, turned + top(), rank, 0.0F, projected + rank, d);
  }
};

NuclearNewton::NuclearNewton(const ScaledProblem& problem, const WorkingRows& rows)
    : problem_(problem), rows_(rows), system_(problem, rows, face_) {
  const Index d = problem.d(), dz = problem.dz();
  face_.d_ = d;
  face_.begin_.fill(problem.groups() + 1, 0);
  face_.gram_begin_.fill(problem.groups() + 1, 0);
  left_.reserve(d * d);
  right_.reserve(dz * dz);
  for (auto* matrix : {&same_, &swapped_, &turned_}) matrix->reserve(d * dz);
  queries_.reserve(problem.groups() * dz);
}

double NuclearNewton::find(const SingularSplit& split, double tau, double accuracy, double fine) {
  choose_face();
  take_slopes(split, tau);
  problem_.for_each_block([&](Index first, Index last) { turn_block(first, last); });
  Derivative derivative{*this};
  system_.solve(kIterationLimit, accuracy, derivative);
  return project_blocks(fine);
}

void NuclearNewton::took(double length, bool good) { system_.adapt_damping(length < kPoorLength, good); }

void NuclearNewton::choose_face() {
  const Index groups = problem_.groups();
  for (Index i = 0; i < groups; ++i) {
    Index size = 0;
    for (Index k = rows_.begin(i); k < rows_.end(i); ++k) size += rows_.in_face(k) ? 1 : 0;
    face_.begin_[i + 1] = face_.begin_[i] + size;
    face_.gram_begin_[i + 1] = face_.gram_begin_[i] + size * size;
  }
  const Index size = face_.begin(groups), numbers = size * problem_.d(), blocks = face_.gram_begin(groups);
  face_.member_.grow(size);
  move_.fill(rows_.size(), 0.0);
  system_.resize(size, blocks);
  if (numbers > face_.deltas_.capacity()) face_.deltas_.reserve(numbers + numbers / 4);
  if (blocks > face_.gram_.capacity()) face_.gram_.reserve(blocks + blocks / 2);
  for (Index k = 0, f = 0; k < rows_.size(); ++k) {
    if (!rows_.in_face(k)) continue;
    face_.member_[f] = k;
    system_.set_row(f++, true, rows_.rhs(k) - rows_.value[k]);
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
  const Index d = problem_.d(), dz = problem_.dz(), groups = last - first,
              size = face_.begin(last) - face_.begin(first);
  float* queries = queries_.data() + first * dz;
  gemm(false, true, groups, dz, dz, 1.0F, problem_.single_query(first), dz, right_.data(), dz, 0.0F, queries, dz);
  squares.resize(static_cast<std::size_t>(groups * dz));
  weight.resize(static_cast<std::size_t>(groups * d));
  std::transform(queries, queries + groups * dz, squares.begin(), [](float z) { return z * z; });
  gemm(false, true, groups, d, dz, 1.0F, squares.data(), dz, same_.data(), dz, 0.0F, weight.data(), d);
  plain.resize(static_cast<std::size_t>(size * d));
  for (Index i = first, at = 0; i < last; ++i) {
    for (Index f = face_.begin(i); f < face_.end(i); ++f, at += d) {
      std::copy_n(rows_.deltas(i) + (face_.member(f) - rows_.begin(i)) * d, d, plain.data() + at);
    }
  }
  if (size == 0) return;
  gemm(false, true, size, d, d, 1.0F, plain.data(), d, left_.data(), d, 0.0F,
       face_.deltas_.data() + face_.begin(first) * d, d);
  weigh_block(first, last, weight.data());
}

void NuclearNewton::weigh_block(Index first, Index last, const float* weight) {
  thread_local std::vector<float> weighted, products;
  const Index d = problem_.d();
  for (Index i = first; i < last; ++i, weight += d) {
    const Index size = face_.count(i);
    if (size == 0) continue;
    const float* deltas = face_.deltas(i);
    double* K = face_.gram_.data() + face_.gram_begin(i);
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
    for (Index e = 0; e < size; ++e) {
      if (!(K[e * size + e] > 0)) system_.set_row(face_.begin(i) + e, false, 0);  // W cannot move it to first order
    }
    system_.invert_block(i);
  }
}

/// turned = τS′(sum), sum = A(p).
void NuclearNewton::differentiate(const float* sum) {
  constexpr Index kSlices = FaceSystem<FaceRows>::kSlices;
  const Index d = problem_.d(), dz = problem_.dz();
  const float *top = sum, *below = top + rank_ * dz;
  problem_.threads().for_each(kSlices, [&](Index slice) {
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

/// move = projection of λ + x minus λ. Returns the slope of the dual along it.
double NuclearNewton::project_blocks(double fine) {
  const double changes = problem_.sum_over_blocks([&](Index first, Index last) {
    Index changed = 0;
    for (Index i = first; i < last; ++i) system_.project_block(i, fine, move_.data());
    for (Index f = face_.begin(first); f < face_.begin(last); ++f) {
      const double before = rows_.lambda[face_.member(f)];
      changed += (before > 0) != (before + move_[face_.member(f)] > 0) ? 1 : 0;
    }
    return static_cast<double>(changed);
  });
  const Index all = problem_.sums().count(face_.begin(problem_.groups()));
  changed_ = changes / static_cast<double>(std::max<Index>(1, all));
  return problem_.sum_over_blocks([&](Index first, Index last) { return rows_.slope(move_.data(), first, last); });
}

}  // namespace attsvm::internal
