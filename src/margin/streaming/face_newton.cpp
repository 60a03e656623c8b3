#include "margin/streaming/face_newton.h"

#include <cmath>

#include "base/blas.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kIterationLimit = 60;  // of conjugate gradients
constexpr double kGoodLength = 0.8;    // exact step length from which the damping falls

/// K = A Aᵀ of the working rows.
struct GramOperator {
  const ScaledProblem& problem;
  const float* sum = nullptr;

  Index size() const { return problem.d() * problem.dz(); }
  void add(Index first, Index last, const float* mixed, bool again, float* to) const {
    const Index d = problem.d(), dz = problem.dz();
    gemm(true, false, d, dz, last - first, 1.0F, mixed, d, problem.single_query(first), dz, again ? 1.0F : 0.0F, to,
         dz);
  }
  void respond(const float* all) { sum = all; }
  void spread(Index first, Index last, float* projected) const {
    const Index d = problem.d(), dz = problem.dz();
    gemm(false, true, last - first, d, dz, 1.0F, problem.single_query(first), dz, sum, dz, 0.0F, projected, d);
  }
};

}  // namespace

FaceNewton::FaceNewton(const ScaledProblem& problem, WorkingRows& rows)
    : problem_(problem), rows_(rows), system_(problem, rows, rows) {
  move_W_.reserve(problem.d() * problem.dz());
}

void FaceNewton::step(double accuracy, double fine, double* W) {
  choose_face();
  GramOperator gram{problem_};
  system_.solve(kIterationLimit, accuracy, gram);
  double longest = kInfinity;
  const double slope = project_blocks(fine, longest);
  rows_.weigh(move_.data(), move_W_.data());
  const Index entries = problem_.d() * problem_.dz();
  const double norm = ConstVector(move_W_.data(), entries).norm(), ideal = slope / (norm * norm);
  double length = norm > 0 ? std::clamp(ideal, 0.0, longest) : 0;
  if (length > 0.5 && length < 1) length = 1;  // the full step meets the rows of the face, at a small loss
  system_.adapt_damping(!(length >= poor_length_), ideal > kGoodLength);
  advance(length);
  for (Index j = 0; j < entries; ++j) W[j] += length * move_W_[j];
}

/// Computes the face at the present point, the inverses of its blocks, and the residual of x = 0.
void FaceNewton::choose_face() {
  system_.resize(rows_.size(), rows_.gram_size());
  move_.grow(rows_.size());
  problem_.for_each_block([&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Index count = rows_.count(i);
      for (Index e = 0; e < count; ++e) {
        const Index k = rows_.begin(i) + e;
        const bool live = rows_.gram(i)[e * count + e] > 0;  // a zero row has the same value for every W
        system_.set_row(k, rows_.in_face(k) && live, rows_.rhs(k) - rows_.value[k]);
      }
      system_.invert_block(i);
    }
  });
}

/// move = projection of λ + x minus λ. Returns the slope of the dual along it; `longest` is the step that keeps λ ≥ 0.
double FaceNewton::project_blocks(double fine, double& longest) {
  std::vector<double> bounds(static_cast<std::size_t>(problem_.blocks()) + 1, kInfinity);
  const double slope = problem_.sum_over_blocks([&](Index first, Index last) {
    double& bound = bounds[static_cast<std::size_t>(problem_.block_at(first))];
    for (Index i = first; i < last; ++i) system_.project_block(i, fine, move_.data());
    for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) {
      if (move_[k] < 0 && !rows_.equal(k)) bound = std::min(bound, -rows_.lambda[k] / move_[k]);
    }
    return rows_.slope(move_.data(), first, last);
  });
  longest = problem_.sums().least(*std::min_element(bounds.begin(), bounds.end()));
  return slope;
}

void FaceNewton::advance(double length) {
  const auto share_of = [&](auto counts) {
    return problem_.sum_over_blocks([&](Index first, Index last) {
      Index count = 0;
      for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) count += counts(k) ? 1 : 0;
      return static_cast<double>(count);
    });
  };
  const double face = share_of([&](Index k) { return system_.has(k); });
  const double changes = share_of([&](Index k) {
    const bool before = rows_.lambda[k] > 0;
    rows_.lambda[k] += length * move_[k];
    if (!rows_.equal(k)) rows_.lambda[k] = std::max(0.0, rows_.lambda[k]);
    return before != (rows_.lambda[k] > 0);
  });
  changed_ = changes / std::max(1.0, face);
}

}  // namespace attsvm::internal
