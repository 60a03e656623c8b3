#include "margin/certify/rank.h"

#include <Eigen/Cholesky>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/blas.h"
#include "base/limits.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

constexpr double kUnit = kEpsilon / 2;
// Set by hand unless a reason is given.
constexpr double kOutside = 1e-6;      // nuclear mass outside the block, relative to W's smallest singular value
constexpr double kShare = 0.5;         // share of W's smallest singular value that an optimum may be away from W
constexpr double kStrict = 1e-6;       // a singular value of A closer to 1 counts as 1
constexpr double kRounding = 4e-16;    // relative error of objective and bound
constexpr double kDetermined = 1e-12;  // mean square singular value below which equations determine nothing
constexpr double kSafety = 4;          // factor on a-priori rounding bounds, for the order of sums in libraries
constexpr Index kMostUnknowns = 6000;  // in the block, which is rank 109; their matrix has the square of this
constexpr Index kChunk = 128;          // equations at a time

constexpr std::string_view kNotStrict =
    "strict complementarity fails: A(dual) has more singular values at 1 than W has directions";
constexpr std::string_view kNotUnique =
    "the optimum is not known to be unique: the rows with multipliers do not determine W";
constexpr std::string_view kGap = "the gap leaves room for another rank; a smaller tolerance may decide";
constexpr std::string_view kTooLarge = "the equations that would show W to be alone are too many to factorise";

}  // namespace

/// Computes the singular vectors of W from its balanced factors.
void RankCertifier::take_bases(const MarginSolution& solution) {
  U_ = solution.K;
  V_ = solution.Q;
  for (Index j = 0; j < U_.cols(); ++j) {
    U_.col(j).normalize();
    V_.col(j).normalize();
  }
}

/// Collects the equations and the rows whose multiplier, for unit length, is at least `least`.
void RankCertifier::collect(const MarginProblem& problem, const RowSums& sums, const MarginSolution& solution,
                            double least) {
  support_ = {.lightest = kInfinity};
  Index candidates = 0;
  for (Index k = 0; k < problem.rows(); ++k) candidates += problem.equal(k) || solution.dual(k) != 0 ? 1 : 0;
  delta_.resize(problem.d(), candidates + 1);  // one more, for a row that turns out to have too small a multiplier
  zeta_.resize(problem.dz(), candidates + 1);
  std::vector<double> squares(static_cast<std::size_t>(sums.segments()), 0.0);
  support_.total = sums.number<double>([&](Index segment) {
    const auto first = static_cast<std::size_t>(sums.begin(segment)),
               last = static_cast<std::size_t>(sums.end(segment));
    double total = 0;
    for (const MarginGroup& group : problem.groups().subspan(first, last - first)) {
      const ConstVector z(group.z, problem.dz());
      const double z_norm = z.stableNorm();
      if (z_norm == 0) continue;
      for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
        if (!problem.equal(k) && solution.dual(k) == 0) continue;
        auto delta = delta_.col(support_.count);
        problem.delta(group, k, delta.data());
        const double delta_norm = delta.stableNorm(), size = delta_norm * z_norm;
        const double weight = std::abs(solution.dual(k)) * size;
        total += weight;
        if (size == 0 || (!problem.equal(k) && weight < least)) continue;
        delta /= delta_norm;
        zeta_.col(support_.count) = z / z_norm;
        if (!problem.equal(k)) support_.lightest = std::min(support_.lightest, weight);
        squares[static_cast<std::size_t>(segment)] += (solution.slack(k) / size) * (solution.slack(k) / size);
        ++support_.count;
      }
    }
    return total;
  });
  support_.misses =
      std::sqrt(sums.number<double>([&](Index segment) { return squares[static_cast<std::size_t>(segment)]; }));
  if (sums.shared()) gather_support(sums);
}

/// The support rows of all processes, in their order.
void RankCertifier::gather_support(const RowSums& sums) {
  support_.lightest = sums.least(support_.lightest);
  const std::string each =
      sums.chain(Packer().put(delta_.leftCols(support_.count)).put(zeta_.leftCols(support_.count)).take());
  const Index all = sums.count(support_.count), d = delta_.rows(), dz = zeta_.rows();
  delta_.resize(d, all + 1);
  zeta_.resize(dz, all + 1);
  support_.count = 0;
  for (Unpacker in(each); !in.done();) {
    const auto deltas = in.matrix<Eigen::MatrixXd>(), zetas = in.matrix<Eigen::MatrixXd>();
    delta_.middleCols(support_.count, deltas.cols()) = deltas;
    zeta_.middleCols(support_.count, zetas.cols()) = zetas;
    support_.count += deltas.cols();
  }
}

/// A bound on the norm of all support row values of a matrix of Frobenius norm one: the root of the largest absolute
/// row sum of their Gram matrix.
double RankCertifier::reach() {
  const Index count = support_.count;
  double largest = 1;
  for (Index first = 0; first < count; first += kChunk) {
    const Index size = std::min(kChunk, count - first);
    gram_.noalias() = delta_.middleCols(first, size).transpose() * delta_.leftCols(count);
    other_.noalias() = zeta_.middleCols(first, size).transpose() * zeta_.leftCols(count);
    largest = std::max(largest, gram_.cwiseProduct(other_).cwiseAbs().rowwise().sum().maxCoeff());
  }
  return std::sqrt(largest) * (1 + 1e-8);
}

/// The normal matrix of δᵀU Y Vᵀζ in an orthonormal basis of symmetric Y, lower triangle.
void RankCertifier::form_equations() {
  const Index r = U_.cols(), unknowns = r * (r + 1) / 2, count = support_.count;
  left_.noalias() = U_.transpose() * delta_.leftCols(count);
  right_.noalias() = V_.transpose() * zeta_.leftCols(count);
  normal_.setZero(unknowns, unknowns);
  for (Index first = 0; first < count; first += kChunk) {
    const Index size = std::min(kChunk, count - first);
    block_.resize(unknowns, size);
    for (Index c = 0; c < size; ++c) {
      const auto a = left_.col(first + c), b = right_.col(first + c);
      for (Index j = 0, t = 0; j < r; ++j) {
        for (Index i = 0; i < j; ++i) block_(t++, c) = (a(i) * b(j) + a(j) * b(i)) * (std::numbers::sqrt2 / 2);
        block_(t++, c) = a(j) * b(j);
      }
    }
    if (unknowns < kOwnLoops) {
      normal_.selfadjointView<Eigen::Lower>().rankUpdate(block_);
    } else {
      gemm(true, false, unknowns, unknowns, size, 1.0, block_.data(), unknowns, block_.data(), unknowns, 1.0,
           normal_.data(), unknowns);
    }
  }
}

/// Whether a Cholesky factorisation of the normal matrix minus square·I succeeds. Then no eigenvalue is below `square`,
/// up to rounding that the caller accounts for.
bool RankCertifier::exceeds(double square) {
  shifted_ = normal_;
  shifted_.diagonal().array() -= square;
  if (shifted_.rows() >= kOwnLoops) return cholesky_of_columns(shifted_.rows(), shifted_.data(), shifted_.rows());
  return Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>>(shifted_).info() == Eigen::Success;
}

/// Whether the smallest singular value of the equations is at least needed_alone + reach·needed_each.
RankCertifier::Determined RankCertifier::judge(const MarginProblem& problem, double needed_alone, double needed_each) {
  const auto r = static_cast<double>(U_.cols()), unknowns = r * (r + 1) / 2,
             count = static_cast<double>(support_.count);
  const auto lengths = static_cast<double>(problem.d() + problem.dz() + 8);
  if (count < unknowns) return Determined::undetermined;
  const double most = std::sqrt(count / unknowns);  // rows are of unit length
  std::optional<SingleThreadBlas> blas;
  if (unknowns >= static_cast<double>(kOwnLoops)) blas.emplace();
  if (!(needed_alone + needed_each <= most)) return Determined::undecided;  // no equations could prove it
  const double needed = needed_alone + reach() * needed_each;
  form_equations();
  const double trace = normal_.trace();
  // Rounding of the equations themselves, of their products, and of the factorisation, whose backward error is at most
  // (n + 1)u/(1 − (n + 1)u) times |L||Lᵀ|, whose norm is at most tr LLᵀ.
  const double of_rows = kSafety * lengths * r * std::sqrt(count) * kUnit;
  const double of_products = kSafety * (count + unknowns + 2) * kUnit * trace;
  if (exceeds((needed + of_rows) * (needed + of_rows) + of_products)) return Determined::proven;
  return exceeds(kDetermined * trace / unknowns + of_rows * of_rows + of_products) ? Determined::undecided
                                                                                   : Determined::undetermined;
}

RankCertificate RankCertifier::certify(const MarginProblem& problem, const RowSums& sums,
                                       const MarginSolution& solution, const Spectrum& spectrum) {
  const Index r = solution.K.cols();
  RankCertificate proof{.rank = r};
  if (solution.status != MarginStatus::optimal) {
    proof.words = "the answer is not proven optimal";
    return proof;
  }
  if (r == 0) {  // W = 0 is the only optimum
    proof.certified = true;
    return proof;
  }
  const double objective = solution.objective;
  const double smallest = solution.K.colwise().squaredNorm().minCoeff();
  double excess = std::max(objective - solution.dual_objective, 0.0) + kRounding * objective;
  collect(problem, sums, solution, std::sqrt(excess / objective));
  excess += 2 * solution.violation * sums.number<double>([&](Index segment) {
    const Index first = sums.first_row(segment);
    return solution.dual.segment(first, sums.end_row(segment) - first).cwiseAbs().sum();
  });  // for rows that W misses
  // The stored A(dual) is the spectrum's A divided by its norm, with each multiplier rounded.
  const double rounded =
      kSafety * static_cast<double>(support_.count + problem.d() + problem.dz()) * kUnit * support_.total;
  if (r < spectrum.values().size())
    proof.next_singular_value = std::min(1.0, spectrum.bound_beyond(r) / spectrum.bound());
  const double apart = 1 - proof.next_singular_value - rounded;
  proof.outside_mass = apart > 0 ? excess / apart : objective;
  if (!(proof.outside_mass <= kOutside * smallest)) {
    proof.words = apart <= kStrict ? kNotStrict : kGap;
    return proof;
  }
  if (r * (r + 1) / 2 > kMostUnknowns && r * (r + 1) / 2 <= support_.count) {
    proof.words = kTooLarge;
    return proof;
  }
  // Every optimum is X* = E Y Eᵀ + Δ: bounds ‖Δ‖, the distance of E from the directions of W, and their effect on rows.
  take_bases(solution);
  const double skew = ((U_.transpose() * U_ + V_.transpose() * V_) / 2 - Eigen::MatrixXd::Identity(r, r)).norm();
  const double turned = (spectrum.misfit(U_, V_) + rounded) / apart + 2 * skew;
  const double mass = 2 * proof.outside_mass;
  const double away = std::sqrt(2 * objective * mass) + mass / 2 + 4 * objective * turned;
  const double room = kShare * smallest - away;
  const double misses = support_.misses + excess / support_.lightest;
  const Determined verdict = room > 0 ? judge(problem, misses / room, away / room) : judge(problem, kInfinity, 0);
  proof.certified = verdict == Determined::proven;
  if (verdict == Determined::undetermined) proof.words = kNotUnique;
  if (verdict == Determined::undecided) proof.words = kGap;
  return proof;
}

}  // namespace attsvm::internal
