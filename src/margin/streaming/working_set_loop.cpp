#include "margin/streaming/working_set_loop.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {
namespace {

constexpr double kAllowedViolation = 4e-10;  // slightly below what the certifier accepts
constexpr double kShare = 0.1;               // of tolerance and allowed violation: rows that miss by less do not enter

}  // namespace

void WorkingSetLoop::KeptRows::take(const WorkingRows& rows) {
  all = rows.all_size();
  row.resize(static_cast<std::size_t>(rows.size()));
  lambda.assign(rows.lambda.data(), rows.lambda.data() + rows.size());
  for (Index k = 0; k < rows.size(); ++k) row[static_cast<std::size_t>(k)] = rows.row(k);
}

void WorkingSetLoop::KeptRows::spread(double factor, Index rows, Eigen::VectorXd& out) const {
  out.setZero(rows);
  for (std::size_t k = 0; k < row.size(); ++k) out(row[k]) = factor * lambda[k];
}

WorkingSetLoop::WorkingSetLoop(const MarginProblem& problem, Threads& threads, const SharedRows* shared)
    : problem_(problem, threads, shared), rows_(problem_), choice_(problem_, rows_) {
  W_.fill(problem.d() * problem.dz(), 0.0);
}

bool WorkingSetLoop::begin(double tolerance, const std::function<bool(const SolveProgress&)>& stop) {
  start_ = std::chrono::steady_clock::now();
  tolerance_ = tolerance;
  allowed_violation_ = kAllowedViolation * problem_.rhs_scale();
  stop_ = stop;
  round_ = iterations_ = 0;
  history_.clear();
  best_objective_ = problem_.has_demands() ? kInfinity : 0;
  best_bound_ = 0;
  if (!problem_.has_demands()) return false;
  rows_.rebuild(std::vector<std::vector<PickedRow>>(static_cast<std::size_t>(problem_.groups())));
  return true;
}

void WorkingSetLoop::start_from(const Eigen::VectorXd& dual, double scale) {
  choice_.choose_from(dual);
  rows_.rebuild(choice_.picked());
  for (Index k = 0; k < rows_.size(); ++k) rows_.lambda[k] = dual(rows_.row(k)) / scale;
}

/// The standing of a W of this norm whose multipliers prove this bound; W is stretched until it meets the rows.
WorkingSetLoop::Standing WorkingSetLoop::stand_at(const RowSummary& summary, double bound, double norm) const {
  Standing standing{.bound = bound};
  const bool mended = problem_.stretchable() && summary.least > 0 && summary.least < kInfinity;
  if (problem_.stretchable() && !mended) return standing;
  if (mended) standing.stretch = 1 / summary.least;
  standing.violation = standing.stretch * summary.violation;
  standing.objective = standing.stretch * norm * problem_.weight_scale();
  standing.gap = std::abs(1 - standing.bound / standing.objective);
  return standing;
}

/// The distance from the goal: at most the tolerance if both gap and violation are small enough.
double WorkingSetLoop::distance(const Standing& standing) const {
  return std::max(standing.gap / kCaution, tolerance_ * standing.violation / allowed_violation_);
}

ChoiceRules WorkingSetLoop::choose_within(double within, Index most) const {
  return {.most = most, .within = within, .tolerance = kShare * tolerance_, .violation = kShare * allowed_violation_};
}

SolveProgress WorkingSetLoop::progress() const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {iterations_, best_objective_, best_bound_, elapsed.count()};
}

}  // namespace attsvm::internal
