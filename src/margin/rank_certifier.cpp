#include "margin/rank_certifier.h"

#include <cmath>
#include <numbers>

namespace attsvm {
namespace {

constexpr double kOutside = 1e-6;        // nuclear mass outside the block, relative to W's smallest singular value
constexpr double kStrict = 1e-6;         // a singular value of A closer to 1 is not told from 1
constexpr double kSupportWeight = 1e-9;  // a smaller multiplier, relative to the largest, does not hold its row
constexpr double kDetermined = 1e-12;    // squared smallest singular value of equations that determine something
constexpr double kRounding = 4e-16;      // relative error of objective and bound
constexpr Index kTestedRank = 50;        // the test of uniqueness factorises a matrix of size rank²/2

}  // namespace

/// Whether no other W can be optimal. Every optimum is U Y Vᵀ with Y ⪰ 0 in the block where A(dual) = UVᵀ, and meets
/// the rows with a multiplier with equality; so W is alone where those equations determine the symmetric Y.
bool RankCertifier::is_unique(const MarginProblem& problem, const MarginSolution& solution) {
  const Index r = solution.K.cols(), unknowns = r * (r + 1) / 2;
  const double least = kSupportWeight * solution.dual.cwiseAbs().maxCoeff();
  normal_.setZero(unknowns, unknowns);
  delta_.resize(problem.d());
  row_.resize(unknowns);
  sizes_ = solution.K.colwise().norm();
  for (const MarginGroup& group : problem.groups()) {
    right_.noalias() = solution.Q.transpose() * ConstVector(group.z, problem.dz());
    right_.array() /= sizes_.array();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (!problem.equal(k) && solution.dual(k) <= least) continue;
      problem.delta(group, k, delta_.data());
      left_.noalias() = solution.K.transpose() * delta_;
      left_.array() /= sizes_.array();
      const double size = left_.norm() * right_.norm();
      if (size == 0) continue;
      for (Index j = 0, t = 0; j < r; ++j) {
        for (Index i = 0; i < j; ++i) {
          row_(t++) = (left_(i) * right_(j) + left_(j) * right_(i)) * (std::numbers::sqrt2 / 2) / size;
        }
        row_(t++) = left_(j) * right_(j) / size;
      }
      normal_.selfadjointView<Eigen::Lower>().rankUpdate(row_);
    }
  }
  eigen_.compute(normal_, Eigen::EigenvaluesOnly);
  return eigen_.eigenvalues()(0) > kDetermined * eigen_.eigenvalues()(unknowns - 1);
}

RankCertificate RankCertifier::certify(const MarginProblem& problem, const MarginSolution& solution,
                                       const Spectrum& spectrum) {
  const Index r = solution.K.cols();
  RankCertificate proof{.rank = r};
  if (solution.status != MarginStatus::optimal) {
    proof.words = "the answer is not proven optimal";
    return proof;
  }
  if (r == 0) {  // the only matrix of norm zero
    proof.certified = true;
    return proof;
  }
  const double excess = std::max(solution.objective - solution.dual_objective, kRounding * solution.objective);
  const double smallest = solution.K.colwise().squaredNorm().minCoeff();
  if (r < spectrum.values().size()) {
    proof.next_singular_value = std::min(1.0, spectrum.values()(r) / spectrum.bound());
    proof.outside_mass = excess / (1 - proof.next_singular_value);
  }
  if (!(proof.outside_mass <= kOutside * smallest)) {
    proof.words = 1 - proof.next_singular_value <= kStrict
                      ? "strict complementarity fails: A(dual) has more singular values at 1 than W has directions"
                      : "the gap leaves room for another rank; a smaller tolerance decides";
  } else if (r <= kTestedRank && !is_unique(problem, solution)) {
    proof.words = "the optimum is not unique: the rows with multipliers do not determine W";
  } else {
    proof.certified = true;
  }
  return proof;
}

}  // namespace attsvm
