#include "margin/streaming/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/blas.h"
#include "base/kernels/stream.h"

namespace attsvm::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAllowedViolation = 4e-10;  // slightly below what the certifier accepts
constexpr Index kStepLimit = 30;             // Newton steps per round
constexpr Index kPatience = 40;              // rounds that may pass without halving the gap or raising the bound
constexpr double kRaised = 1.02;             // factor by which the bound has to rise
constexpr double kManyRows = 1e-3;           // share of new rows from which one Newton step per round is best
constexpr double kSlowDecline = 0.6;         // ratio of the new rows of a round to those of the round before
constexpr Index kUsualRounds = 10;           // well-conditioned problems rarely take more
constexpr Index kMostRows = 1024;
constexpr double kNearlyDone = 1e-3;  // gap below which no row leaves, so that the set can only grow

}  // namespace

WorkingSetSolver::WorkingSetSolver(const MarginProblem& problem, Threads& threads)
    : problem_(problem, threads), rows_(problem_), newton_(problem_, rows_), choice_(problem_, rows_) {
  W_.fill(problem.d() * problem.dz(), 0.0);
}

WorkingSetSolver::Outcome WorkingSetSolver::solve(double tolerance, const Eigen::VectorXd* warm_dual,
                                                  const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas single_thread;
  start_ = std::chrono::steady_clock::now();
  tolerance_ = tolerance;
  allowed_violation_ = kAllowedViolation * problem_.rhs_scale();
  stop_ = stop;
  round_ = iterations_ = added_before_ = 0;
  history_.clear();
  best_ = {};
  best_.objective = kInfinity;
  if (!problem_.has_demands()) {
    best_.objective = 0;
    return Outcome::converged;
  }
  rows_.rebuild(std::vector<std::vector<PickedRow>>(static_cast<std::size_t>(problem_.groups())));
  const bool warm = warm_dual != nullptr && warm_dual->size() == problem_.problem().rows();
  warm ? start_from(*warm_dual) : start_cold();

  Standing standing{1, kInfinity, 0, 1, kInfinity};
  double closest = 1, highest = 0;
  Index closest_round = 0;
  if (!warm && improve(standing)) return Outcome::stopped;
  for (round_ = 1;; ++round_) {
    standing = stand(choice_.choose(W_.data(), rules(standing)));
    const double now = distance(standing);
    const bool converged = now <= tolerance_;
    keep_best(standing, converged);
    history_.push_back(progress());
    if (converged) return Outcome::converged;
    if (now <= 0.5 * closest || standing.bound >= kRaised * highest) {  // a feasible W may come late
      closest = std::min(now, closest);
      highest = std::max(standing.bound, highest);
      closest_round = round_;
    } else if (round_ - closest_round >= kPatience) {
      return Outcome::stalled;
    }
    if (stop_ && stop_(history_.back())) return Outcome::stopped;
    choice_.added() + choice_.dropped() > 0 ? rows_.rebuild(choice_.picked()) : rows_.take_values(choice_.picked());
    if (improve(standing)) return Outcome::stopped;
    watch_progress();
  }
}

/// Starts from the rows that are worst at a first guess of W, which prefers each kept token over the mean of a few
/// others.
void WorkingSetSolver::start_cold() {
  const Index d = problem_.d(), n = problem_.groups();
  Storage<double> guess;
  guess.reserve(n * d);
  problem_.for_each_block([&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Index tokens = problem_.tokens(i), stride = std::max<Index>(1, tokens / 8);
      const MarginGroup& group = problem_.group(i);
      Eigen::Map<Eigen::VectorXd> g(guess.data() + i * d, d);
      g.setZero();
      double count = 0;
      for (Index t = stride / 2; t < tokens; t += stride, ++count) g += ConstVector(group.X + t * d, d);
      g = ConstVector(group.X + group.keep * d, d) - g / count;
    }
  });
  problem_.weigh(guess.data(), W_.data());
  const double entries = static_cast<double>(d * problem_.dz());
  const auto first = static_cast<Index>(std::clamp(0.5 * entries / static_cast<double>(n), 4.0, 10.0));
  most_ = std::max<Index>(2, 6 * first / 10);
  choice_.choose(W_.data(), {.most = first, .within = 0, .tolerance = 0, .violation = 0, .anything = true});
  rows_.rebuild(choice_.picked());
  W_.fill(d * problem_.dz(), 0.0);
  std::fill_n(rows_.value.data(), rows_.size(), 0.0);
  const double fullness = static_cast<double>(n * first) / entries;
  newton_.restart(std::min(1.0, fullness * fullness));
}

void WorkingSetSolver::start_from(const Eigen::VectorXd& lambda) {
  choice_.choose_from(lambda);
  rows_.rebuild(choice_.picked());
  for (Index k = 0; k < rows_.size(); ++k) rows_.lambda[k] = lambda(rows_.row(k)) / problem_.dual_scale();
  rows_.weigh(rows_.lambda.data(), W_.data());
  // Solutions are scaled to ‖A(λ)‖ = 1; here they need the multiple that maximises the dual.
  const Index entries = problem_.d() * problem_.dz();
  const double square = ConstVector(W_.data(), entries).squaredNorm();
  const double factor = square > 0 ? std::max(0.0, rows_.demand()) / square : 0;
  for (Index k = 0; k < rows_.size(); ++k) rows_.lambda[k] *= factor;
  for (Index j = 0; j < entries; ++j) W_[j] *= factor;
  most_ = 6;
  newton_.restart(0);
}

/// If many new rows keep coming, adds more rows per round and allows longer steps.
void WorkingSetSolver::watch_progress() {
  const Index added = choice_.added();
  if (round_ > kUsualRounds && static_cast<double>(added) > kSlowDecline * static_cast<double>(added_before_)) {
    most_ = std::min(kMostRows, most_ + most_ / 2);
    newton_.be_bold();
  }
  added_before_ = added;
}

ChoiceRules WorkingSetSolver::rules(const Standing& standing) const {
  const double within = standing.gap < kNearlyDone ? kInfinity : round_ <= 3 ? 1.0 : 0.2;
  return {.most = most_, .within = within, .tolerance = 0.1 * tolerance_, .violation = 0.1 * allowed_violation_};
}

/// Takes Newton steps until the working set is solved well enough for a pass over all rows. True: asked to stop.
bool WorkingSetSolver::improve(const Standing& standing) {
  const double fresh = static_cast<double>(choice_.added()) / static_cast<double>(std::max<Index>(1, rows_.size()));
  double now = distance(standing);
  const double target = std::max(0.05 * std::min(1.0, now), 0.3 * tolerance_);
  for (Index step = 0; step < kStepLimit; ++step) {
    // The fewer rows enter or leave, the more a step gains from an accurate solve, but no more than the gap needs.
    const double unrest = 3 * std::max(newton_.changed(), step == 0 ? fresh : 0);
    const double needed = 0.1 * tolerance_ / std::max(now, tolerance_);
    newton_.step(std::min(0.1, std::max({unrest, 1e-3, needed})), 1e-3 * tolerance_, W_.data());
    ++iterations_;
    if (stop_ && stop_(progress())) {
      if (best_.objective == kInfinity) keep_point(standing.stretch);
      return true;
    }
    if (fresh > kManyRows) return false;
    rows_.evaluate(W_.data());
    now = distance(stand(summarize_working_rows()));
    if (now < target) return false;
  }
  return false;
}

RowSummary WorkingSetSolver::summarize_working_rows() const {
  RowSummary summary{kInfinity, 0};
  for (Index k = 0; k < rows_.size(); ++k) choice_.see(rows_.row(k), rows_.value[k], summary);
  return summary;
}

WorkingSetSolver::Standing WorkingSetSolver::stand(const RowSummary& summary) const {
  const double norm = ConstVector(W_.data(), problem_.d() * problem_.dz()).norm();
  Standing standing{1, kInfinity, 0, 1, kInfinity};
  if (!(norm > 0)) return standing;
  standing.bound = rows_.demand() / norm * problem_.weight_scale();
  const bool mended = problem_.stretchable() && summary.least > 0 && summary.least < kInfinity;
  if (problem_.stretchable() && !mended) return standing;
  if (mended) standing.stretch = 1 / summary.least;
  standing.violation = standing.stretch * summary.violation;
  standing.objective = standing.stretch * norm * problem_.weight_scale();
  standing.gap = std::abs(1 - standing.bound / standing.objective);
  return standing;
}

/// The distance from the goal: at most the tolerance if both gap and violation are small enough.
double WorkingSetSolver::distance(const Standing& standing) const {
  return std::max(standing.gap / 0.9, tolerance_ * standing.violation / allowed_violation_);
}

void WorkingSetSolver::keep_best(const Standing& standing, bool certainly) {
  const bool feasible = standing.violation <= allowed_violation_;
  const double objective = feasible ? standing.objective : kInfinity;
  best_.bound = std::max(best_.bound, standing.bound);
  if (!certainly && !(objective < best_.objective) && best_.objective < kInfinity) return;
  best_.objective = std::min(best_.objective, objective);
  keep_point(standing.stretch);
}

void WorkingSetSolver::keep_point(double stretch) {
  best_.stretch = stretch;
  best_.row.assign(static_cast<std::size_t>(rows_.size()), 0);
  best_.lambda.assign(static_cast<std::size_t>(rows_.size()), 0);
  for (Index k = 0; k < rows_.size(); ++k) {
    best_.row[static_cast<std::size_t>(k)] = rows_.row(k);
    best_.lambda[static_cast<std::size_t>(k)] = rows_.lambda[k];
  }
}

SolveProgress WorkingSetSolver::progress() const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {iterations_, best_.objective, best_.bound, elapsed.count()};
}

void WorkingSetSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  const SingleThreadBlas single_thread;
  const MarginProblem& problem = problem_.problem();
  const Index d = problem_.d();
  lambda.setZero(problem.rows());
  for (std::size_t k = 0; k < best_.row.size(); ++k) {
    lambda(best_.row[k]) = problem_.dual_scale() * best_.stretch * best_.lambda[k];
  }
  Storage<double> mixed;
  mixed.reserve(problem_.groups() * d);
  problem_.for_each_block([&](Index first, Index last) {
    std::vector<double> factor;
    std::vector<Index> token;
    for (Index i = first; i < last; ++i) {
      const MarginGroup& group = problem_.group(i);
      factor.assign(1, 0.0);
      token.assign(1, group.keep);
      for (Index row = group.first_row; row < group.first_row + group.rows; ++row) {
        if (lambda(row) == 0) continue;
        factor[0] += lambda(row);
        factor.push_back(-lambda(row));
        token.push_back(problem.drop(row));
      }
      row_combination_at(group.X, token.data(), static_cast<Index>(token.size()), d, factor.data(),
                         mixed.data() + i * d);
    }
  });
  W.resize(d, problem_.dz());
  problem_.weigh(mixed.data(), W.data());
  W /= problem_.query_factor();
}

}  // namespace attsvm::internal
