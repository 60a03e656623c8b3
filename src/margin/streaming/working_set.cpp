#include "margin/streaming/working_set.h"

#include <algorithm>
#include <cmath>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kStepLimit = 30;      // Newton steps per round
constexpr double kRaised = 1.02;      // factor by which the bound has to rise to count as progress
constexpr double kManyRows = 1e-3;    // share of new rows from which one Newton step per round is best
constexpr double kSlowDecline = 0.6;  // ratio of the new rows of a round to those of the round before
constexpr Index kUsualRounds = 10;    // separable random data take seven or eight
constexpr Index kMostRows = 1024;     // that a query may add per round
constexpr double kNearlyDone = 1e-3;  // gap below which no row leaves, so that the set can only grow

}  // namespace

WorkingSetSolver::WorkingSetSolver(const MarginProblem& problem, Threads& threads, const SharedRows* shared)
    : WorkingSetLoop(problem, threads, shared), newton_(problem_, rows_) {}

WorkingSetSolver::Outcome WorkingSetSolver::solve(double tolerance, const Eigen::VectorXd* warm_dual,
                                                  const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas single_thread;
  added_before_ = 0;
  best_ = {};
  best_stretch_ = 1;
  if (!begin(tolerance, stop)) return Outcome::converged;
  if (warm_dual != nullptr && warm_dual->size() == problem_.problem().rows()) {
    start_warm(*warm_dual);
  } else {
    start_cold();
    if (improve(Standing{})) return Outcome::stopped;
  }
  return run(*this, kRaised);
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
  const auto all = static_cast<double>(problem_.sums().groups());
  const auto first = static_cast<Index>(std::clamp(0.5 * entries / all, 4.0, 10.0));
  most_ = std::max<Index>(2, 6 * first / 10);
  choice_.choose(W_.data(), {.most = first, .within = 0, .tolerance = 0, .violation = 0, .anything = true});
  rows_.rebuild(choice_.picked());
  W_.fill(d * problem_.dz(), 0.0);
  std::fill_n(rows_.value.data(), rows_.size(), 0.0);
  const double fullness = all * static_cast<double>(first) / entries;
  newton_.restart(std::min(1.0, fullness * fullness));
}

void WorkingSetSolver::start_warm(const Eigen::VectorXd& dual) {
  start_from(dual, problem_.dual_scale());
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

ChoiceRules WorkingSetSolver::rules(const Standing& standing) const {
  return choose_within(standing.gap < kNearlyDone ? kInfinity : round_ <= 3 ? 1.0 : 0.2, most_);
}

WorkingSetSolver::Standing WorkingSetSolver::stand(const RowSummary& summary) const {
  const double norm = ConstVector(W_.data(), problem_.d() * problem_.dz()).norm();
  if (!(norm > 0)) return {};
  return stand_at(summary, rows_.demand() / norm * problem_.weight_scale(), norm);
}

double WorkingSetSolver::judge(const Standing& standing) {
  const double now = distance(standing), objective = feasible_objective(standing);
  best_bound_ = std::max(best_bound_, standing.bound);
  if (now <= tolerance_ || objective < best_objective_ || best_objective_ == kInfinity) {
    best_objective_ = std::min(best_objective_, objective);
    keep_point(standing.stretch);
  }
  return now;
}

void WorkingSetSolver::keep_point(double stretch) {
  best_.take(rows_);
  best_stretch_ = stretch;
}

std::optional<WorkingSetSolver::Outcome> WorkingSetSolver::advance(const Standing& standing) {
  if (improve(standing)) return Outcome::stopped;
  watch_progress();
  return {};
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

/// Takes Newton steps until the working set is solved well enough for a pass over all rows. True: asked to stop.
bool WorkingSetSolver::improve(const Standing& standing) {
  const double fresh = static_cast<double>(choice_.added()) / static_cast<double>(std::max<Index>(1, rows_.all_size()));
  double now = distance(standing);
  const double target = std::max(0.05 * std::min(1.0, now), 0.3 * tolerance_);
  for (Index step = 0; step < kStepLimit; ++step) {
    // The fewer rows enter or leave, the more a step gains from an accurate solve, but no more than the gap needs.
    const double unrest = 3 * std::max(newton_.changed(), step == 0 ? fresh : 0);
    const double needed = 0.1 * tolerance_ / std::max(now, tolerance_);
    newton_.step(std::min(0.1, std::max({unrest, 1e-3, needed})), 1e-3 * tolerance_, W_.data());
    ++iterations_;
    if (asked_to_stop()) {
      if (best_objective_ == kInfinity) keep_point(standing.stretch);
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
  RowSummary summary;
  for (Index k = 0; k < rows_.size(); ++k) choice_.see(rows_.row(k), rows_.value[k], summary);
  return choice_.of_all(summary);
}

void WorkingSetSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  const SingleThreadBlas single_thread;
  const MarginProblem& problem = problem_.problem();
  best_.spread(problem_.dual_scale() * best_stretch_, problem.rows(), lambda);
  W.resize(problem_.d(), problem_.dz());
  Storage<double> mixed;
  problem_.weigh_tokens(
      [&](Index i, const auto& take) {
        const MarginGroup& group = problem_.group(i);
        for (Index row = group.first_row; row < group.first_row + group.rows; ++row)
          take(problem.drop(row), lambda(row));
      },
      mixed, W.data());
  W /= problem_.query_factor();
}

}  // namespace attsvm::internal
