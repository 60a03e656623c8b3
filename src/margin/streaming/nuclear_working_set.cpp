#include "margin/streaming/nuclear_working_set.h"

#include <algorithm>
#include <cmath>

#include "base/blas.h"
#include "base/limits.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
// docs/tried.md counts steps and products for other τ, growth, damping and accuracies.
// τ in units of the largest singular value of the first W. Long proximal steps save rounds and cost iterations of
// conjugate gradients: the symmetric part of S′ grows with τ, the rest does not.
constexpr double kFirstTau = 2, kLongestTau = 50;
constexpr double kTauGrowth = 1.3;     // measured: 1.5 takes more steps
constexpr double kFirstDamping = 0.1;  // measured on an earlier form: 0 and 1 take more steps
constexpr Index kStepsPerRound = 3;    // Newton steps
// Accuracy of conjugate gradients: kUnrest times the share of rows that entered or left, between kFine and kCoarse.
constexpr double kUnrest = 3, kFine = 0.05, kCoarse = 0.15;  // measured: 0.02 takes more products
// Ratio of the residual of the rows to that of the dual norm below which a proximal step counts as solved; once rows
// have settled, the next step corrects the rest. Measured: 10 from the start takes two to four times the steps.
constexpr double kBalance = 1, kLateBalance = 8;
constexpr Index kMostRows = 8;      // rows that a query may add per round
constexpr double kRounded = 1e-14;  // of τ: singular values of W are differences from τ, with its rounding
constexpr double kNoTau = 1e-12;    // of the largest singular value: a τ so small that W is the centre
constexpr Index kLengths = 5;       // most lengths that a line search tries
constexpr double kOvershoot = 0.9;  // largest accepted ratio of the slopes at the end and the start of a step
constexpr double kRetreat = 0.1;    // factor of the step length if W vanished
constexpr double kGoodSlope = 0.3;  // the same ratio, below which the damping falls

}  // namespace

NuclearWorkingSet::NuclearWorkingSet(const MarginProblem& problem, Threads& threads, const SharedRows* shared)
    : WorkingSetLoop(problem, threads, shared), newton_(problem_, rows_), split_(problem.d(), problem.dz(), threads) {
  for (auto* matrix : {&centre_, &A_, &B_, &move_W_}) matrix->fill(problem.d() * problem.dz(), 0.0);
}

NuclearWorkingSet::Outcome NuclearWorkingSet::solve(double tolerance, const RowMatrix& W, const Eigen::VectorXd& dual,
                                                    const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas single_thread;
  best_ = {};
  best_.K.resize(problem_.d(), 0);
  best_.Q.resize(problem_.dz(), 0);
  if (!begin(tolerance, stop)) return Outcome::converged;
  start(W, dual);
  return update() ? run(*this, kInfinity) : Outcome::stalled;
}

void NuclearWorkingSet::start(const RowMatrix& W, const Eigen::VectorXd& dual) {
  const Index d = problem_.d(), dz = problem_.dz();
  start_from(dual, 1);
  rows_.weigh(rows_.lambda.data(), A_.data());
  const double norm = largest_singular_value(A_.data(), d, dz);
  for (Index k = 0; norm > 0 && k < rows_.size(); ++k) rows_.lambda[k] /= norm;
  for (Index j = 0; norm > 0 && j < d * dz; ++j) A_[j] /= norm;
  for (Index j = 0; j < d * dz; ++j) centre_[j] = W.data()[j] / problem_.weight_scale();
  const double size = largest_singular_value(centre_.data(), d, dz);
  tau_ = kNoTau * size;
  longest_tau_ = kLongestTau * size;
  newton_.restart(kFirstDamping);
}

ChoiceRules NuclearWorkingSet::rules(const Standing& /*standing*/) const {
  return choose_within(round_ <= 4 ? 1.0 : kInfinity, kMostRows);
}

NuclearWorkingSet::Standing NuclearWorkingSet::stand(const RowSummary& summary) const {
  const double norm = largest_singular_value(A_.data(), problem_.d(), problem_.dz());
  if (!(norm > 0)) return {};
  const double bound = std::max(0.0, rows_.demand() / norm * problem_.weight_scale());
  return stand_at(summary, bound, split_.sum_above(tau_));
}

/// W and λ need not come from the same round.
double NuclearWorkingSet::judge(const Standing& standing) {
  const bool first = best_.all == 0;
  if (first || standing.bound > best_bound_) {
    best_bound_ = standing.bound;
    best_.take(rows_);
  }
  const double objective = feasible_objective(standing);
  if (first || objective < best_objective_) {
    best_objective_ = objective;
    keep_factors(standing.stretch);
  }
  return std::min(distance(standing), (1 - best_bound_ / best_objective_) / kCaution);
}

void NuclearWorkingSet::keep_factors(double stretch) {
  const double noise = std::max(kRounded * tau_, kSingularNoise * (split_.value(0) - tau_));
  const Index d = problem_.d(), dz = problem_.dz(), rank = split_.rank_above(tau_ + noise);
  best_.K.resize(d, rank);
  best_.Q.resize(dz, rank);
  for (Index k = 0; k < rank; ++k) {
    const double root = std::sqrt((split_.value(k) - tau_) * stretch * problem_.weight_scale());
    best_.K.col(k) = root * ConstVector(split_.left() + k * d, d);
    best_.Q.col(k) = root * ConstVector(split_.right() + k * dz, dz);
  }
}

std::optional<NuclearWorkingSet::Outcome> NuclearWorkingSet::advance(const Standing& standing) {
  if (!recentre()) return Outcome::stalled;
  if (improve(standing)) return Outcome::stopped;
  return {};
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
    if (asked_to_stop()) return true;
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
  return problem_.sum_over_blocks([&](Index first, Index last) { return rows_.slope(newton_.move(), first, last); });
}

NuclearWorkingSet::Residuals NuclearWorkingSet::residuals() const {
  const double square = problem_.sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index k = rows_.begin(first); k < rows_.begin(last); ++k) {
      const double wanted = rows_.rhs(k) - rows_.value[k];
      if (rows_.in_face(k)) sum += wanted * wanted;
    }
    return sum;
  });
  const Index entries = problem_.d() * problem_.dz();
  const double moved = (ConstVector(W_.data(), entries) - ConstVector(centre_.data(), entries)).norm();
  const auto count = static_cast<double>(std::max<Index>(1, rows_.all_size()));
  const auto rank = static_cast<double>(std::max<Index>(1, split_.rank_above(tau_)));
  return {std::sqrt(square / count), moved / (tau_ * std::sqrt(rank))};
}

void NuclearWorkingSet::write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const {
  K = best_.K;
  Q = best_.Q;
  best_.spread(1, problem_.problem().rows(), lambda);
}

}  // namespace attsvm::internal
