#include "margin/streaming/nuclear_working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// τ in units of the largest singular value of the first W. Long proximal steps save rounds and cost iterations of
// conjugate gradients: the symmetric part of S′ grows with τ, the rest does not.
constexpr double kFirstTau = 2;
constexpr double kTauGrowth = 1.3;
constexpr double kLongestTau = 50;
constexpr double kFirstDamping = 0.1;
constexpr Index kStepsPerRound = 3;  // Newton steps
// Accuracy of conjugate gradients: kUnrest times the share of rows that entered or left, between kFine and kCoarse.
constexpr double kUnrest = 3, kFine = 0.05, kCoarse = 0.15;
// Ratio of the residual of the rows to that of the dual norm below which a proximal step counts as solved; once rows
// have settled, the next step corrects the rest.
constexpr double kBalance = 1;
constexpr double kLateBalance = 8;
constexpr Index kMostRows = 8;               // rows that a query may add per round
constexpr double kAllowedViolation = 4e-10;  // slightly below what the certifier accepts
constexpr double kCaution = 0.9;             // share of the tolerance, because the certifier rounds differently
constexpr Index kPatience = 40;              // rounds that may pass without halving the gap
constexpr double kNoise = 2e-12;             // singular values of W below this share of the largest are dropped
constexpr double kRounded = 1e-14;           // of τ: singular values of W are differences from τ, with its rounding
constexpr double kNegligible = 1e-12;        // of the largest singular value
constexpr Index kLengths = 5;                // most lengths that a line search tries
constexpr double kOvershoot = 0.9;           // largest accepted ratio of the slopes at the end and the start of a step
constexpr double kRetreat = 0.1;             // factor of the step length if W vanished
constexpr double kGoodSlope = 0.3;           // the same ratio, below which the damping falls

}  // namespace

NuclearWorkingSet::NuclearWorkingSet(const MarginProblem& problem, Threads& threads)
    : problem_(problem, threads),
      rows_(problem_),
      newton_(problem_, rows_),
      choice_(problem_, rows_),
      split_(problem.d(), problem.dz(), threads) {
  for (auto* matrix : {&W_, &centre_, &A_, &B_, &move_W_}) matrix->fill(problem.d() * problem.dz(), 0.0);
}

NuclearWorkingSet::Outcome NuclearWorkingSet::solve(double tolerance, const RowMatrix& W, const Eigen::VectorXd& dual,
                                                    const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas single_thread;
  start_ = std::chrono::steady_clock::now();
  tolerance_ = tolerance;
  allowed_violation_ = kAllowedViolation * problem_.rhs_scale();
  stop_ = stop;
  round_ = iterations_ = 0;
  history_.clear();
  best_ = {};
  best_.objective = kInfinity;
  if (!problem_.has_demands()) {
    best_.objective = 0;
    best_.K.resize(problem_.d(), 0);
    best_.Q.resize(problem_.dz(), 0);
    return Outcome::converged;
  }
  begin(W, dual);
  if (!update()) return Outcome::stalled;

  Standing standing{1, kInfinity, 0, 1, kInfinity};
  double closest = 1;
  Index closest_round = 0;
  for (round_ = 1;; ++round_) {
    standing = stand(choice_.choose(W_.data(), rules()));
    keep_best(standing);
    history_.push_back(progress());
    const double now = std::min(distance(standing), (1 - best_.bound / best_.objective) / kCaution);
    if (now <= tolerance_) return Outcome::converged;
    if (now <= 0.5 * closest) {
      closest = now;
      closest_round = round_;
    } else if (round_ - closest_round >= kPatience) {
      return Outcome::stalled;
    }
    if (stop_ && stop_(history_.back())) return Outcome::stopped;
    choice_.added() + choice_.dropped() > 0 ? rows_.rebuild(choice_.picked()) : rows_.take_values(choice_.picked());
    if (!recentre()) return Outcome::stalled;
    if (improve(standing)) return Outcome::stopped;
  }
}

void NuclearWorkingSet::begin(const RowMatrix& W, const Eigen::VectorXd& dual) {
  const Index d = problem_.d(), dz = problem_.dz();
  rows_.rebuild(std::vector<std::vector<PickedRow>>(static_cast<std::size_t>(problem_.groups())));
  choice_.choose_from(dual);
  rows_.rebuild(choice_.picked());
  for (Index k = 0; k < rows_.size(); ++k) rows_.lambda[k] = dual(rows_.row(k));
  rows_.weigh(rows_.lambda.data(), A_.data());
  const double norm = largest_singular_value(A_.data(), d, dz);
  for (Index k = 0; norm > 0 && k < rows_.size(); ++k) rows_.lambda[k] /= norm;
  for (Index j = 0; norm > 0 && j < d * dz; ++j) A_[j] /= norm;
  for (Index j = 0; j < d * dz; ++j) centre_[j] = W.data()[j] / problem_.weight_scale();
  const double size = largest_singular_value(centre_.data(), d, dz);
  tau_ = kNegligible * size;  // so small that W is the centre
  longest_tau_ = kLongestTau * size;
  newton_.restart(kFirstDamping);
}

/// Makes W the centre of the next proximal step; the first step has its centre already.
bool NuclearWorkingSet::recentre() {
  if (round_ == 1) {
    tau_ = kFirstTau / kLongestTau * longest_tau_;
  } else {
    std::copy_n(W_.data(), problem_.d() * problem_.dz(), centre_.data());
    if (settled_) tau_ = std::min(kTauGrowth * tau_, longest_tau_);
  }
  if (!update()) return false;
  rows_.evaluate(W_.data());
  return true;
}

/// Computes W from centre, τ and λ. False: LAPACK found no singular vectors.
bool NuclearWorkingSet::update() {
  for (Index j = 0; j < problem_.d() * problem_.dz(); ++j) B_[j] = centre_[j] + tau_ * A_[j];
  if (!split_.compute(B_.data())) return false;
  split_.shrink(tau_, W_.data());
  return true;
}

/// Takes Newton steps until the proximal step is solved well enough (kBalance). True: asked to stop.
bool NuclearWorkingSet::improve(const Standing& standing) {
  settled_ = false;
  for (Index count = 0; count < kStepsPerRound; ++count) {
    const double needed = 0.1 * tolerance_ / std::max(standing.gap, tolerance_);
    step(std::min(kCoarse, std::max({kUnrest * newton_.changed(), kFine, needed})));
    ++iterations_;
    if (stop_ && stop_(progress())) return true;
    const Residuals now = residuals();
    if (now.primal <= (newton_.changed() > 0 ? kBalance : kLateBalance) * now.dual) {
      settled_ = true;
      return false;
    }
  }
  return false;
}

/// One Newton step with a line search on the slope.
void NuclearWorkingSet::step(double accuracy) {
  const double slope = newton_.find(split_, tau_, accuracy, 1e-3 * tolerance_);
  rows_.weigh(newton_.move(), move_W_.data());
  const std::vector<double> lambda(rows_.lambda.data(), rows_.lambda.data() + rows_.size());
  double length = 1, before = 0, after = 0;
  for (Index count = 1;; ++count) {
    after = try_length(lambda, before, length);
    const bool vanished = split_.rank_above(tau_) == 0;  // the derivative is zero at W = 0
    if ((after >= -kOvershoot * slope && !vanished) || count == kLengths) break;
    before = length;
    length *= vanished ? kRetreat : std::clamp(slope / (slope - after), 0.1, 0.8);
  }
  newton_.took(length, length == 1 && after > -kGoodSlope * slope);
}

/// Moves from one length along the step to another; returns the slope there.
double NuclearWorkingSet::try_length(const std::vector<double>& lambda, double from, double to) {
  for (Index k = 0; k < rows_.size(); ++k) {
    rows_.lambda[k] = lambda[static_cast<std::size_t>(k)] + to * newton_.move()[k];
    if (!rows_.equal(k)) rows_.lambda[k] = std::max(0.0, rows_.lambda[k]);
  }
  for (Index j = 0; j < problem_.d() * problem_.dz(); ++j) A_[j] += (to - from) * move_W_[j];
  update();
  rows_.evaluate(W_.data());
  return problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) {
      sum += newton_.move()[k] * (rows_.rhs(k) - rows_.value[k]);
    }
    return sum;
  });
}

NuclearWorkingSet::Residuals NuclearWorkingSet::residuals() const {
  const double square = problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) {
      const double wanted = rows_.rhs(k) - rows_.value[k];
      if (rows_.equal(k) || rows_.lambda[k] > 0 || wanted > 0) sum += wanted * wanted;
    }
    return sum;
  });
  const Index entries = problem_.d() * problem_.dz();
  const double moved = (ConstVector(W_.data(), entries) - ConstVector(centre_.data(), entries)).norm();
  const auto count = static_cast<double>(std::max<Index>(1, rows_.size()));
  const auto rank = static_cast<double>(std::max<Index>(1, split_.rank_above(tau_)));
  return {std::sqrt(square / count), moved / (tau_ * std::sqrt(rank))};
}

ChoiceRules NuclearWorkingSet::rules() const {
  const double within = round_ <= 4 ? 1.0 : kInfinity;
  return {.most = kMostRows, .within = within, .tolerance = 0.1 * tolerance_, .violation = 0.1 * allowed_violation_};
}

NuclearWorkingSet::Standing NuclearWorkingSet::stand(const RowSummary& summary) const {
  Standing standing{1, kInfinity, 0, 1, kInfinity};
  const double norm = largest_singular_value(A_.data(), problem_.d(), problem_.dz());
  if (!(norm > 0)) return standing;
  standing.bound = std::max(0.0, rows_.demand() / norm * problem_.weight_scale());
  const bool mended = problem_.stretchable() && summary.least > 0 && summary.least < kInfinity;
  if (problem_.stretchable() && !mended) return standing;
  if (mended) standing.stretch = 1 / summary.least;
  standing.violation = standing.stretch * summary.violation;
  standing.objective = standing.stretch * split_.sum_above(tau_) * problem_.weight_scale();
  standing.gap = std::abs(1 - standing.bound / standing.objective);
  return standing;
}

/// The distance from the goal: at most the tolerance if both gap and violation are small enough.
double NuclearWorkingSet::distance(const Standing& standing) const {
  return std::max(standing.gap / kCaution, tolerance_ * standing.violation / allowed_violation_);
}

void NuclearWorkingSet::keep_best(const Standing& standing) {
  const bool first = best_.row.empty();
  if (first || standing.bound > best_.bound) {
    best_.bound = standing.bound;
    best_.row.resize(static_cast<std::size_t>(rows_.size()));
    best_.lambda.assign(rows_.lambda.data(), rows_.lambda.data() + rows_.size());
    for (Index k = 0; k < rows_.size(); ++k) best_.row[static_cast<std::size_t>(k)] = rows_.row(k);
  }
  const double objective = standing.violation <= allowed_violation_ ? standing.objective : kInfinity;
  if (!first && !(objective < best_.objective)) return;
  best_.objective = objective;
  const double noise = std::max(kRounded * tau_, kNoise * (split_.value(0) - tau_));
  const Index d = problem_.d(), dz = problem_.dz(), rank = split_.rank_above(tau_ + noise);
  best_.K.resize(d, rank);
  best_.Q.resize(dz, rank);
  for (Index k = 0; k < rank; ++k) {
    const double root = std::sqrt((split_.value(k) - tau_) * standing.stretch * problem_.weight_scale());
    best_.K.col(k) = root * ConstVector(split_.left() + k * d, d);
    best_.Q.col(k) = root * ConstVector(split_.right() + k * dz, dz);
  }
}

SolveProgress NuclearWorkingSet::progress() const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {iterations_, best_.objective, best_.bound, elapsed.count()};
}

void NuclearWorkingSet::write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const {
  K = best_.K;
  Q = best_.Q;
  lambda.setZero(problem_.problem().rows());
  for (std::size_t k = 0; k < best_.row.size(); ++k) lambda(best_.row[k]) = best_.lambda[k];
}

}  // namespace attsvm::internal
