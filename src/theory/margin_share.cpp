#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/refuse.h"
#include "theory/run_shares.h"
#include "train/optimizers.h"
#include "train/settings.h"

namespace attsvm {

using namespace internal;

double margin_share(const MarginProblem& problem, const MarginSolution& solution, const RowMatrix& W) {
  const double size = solution.norm.of(W);
  if (solution.status != MarginStatus::optimal || !(size > 0)) return kNaN;
  return smallest_asked(problem, W) / size * solution.objective;
}

std::optional<ImpliedNorm> implied_norm(const TrainSettings& settings) {
  const bool factored = settings.param == Parametrization::KQ;
  const StepRule rule = rule_of(settings);
  const bool momentum = rule.averages();
  // Else nothing is proven.
  const bool ordinary = settings.selector == Selector::soft && settings.entropy == 0 && settings.heads == 1 &&
                        settings.batch == 0 && settings.temperature[0] == settings.temperature[1];
  // Steps that forget how large the gradient of their batch is move single queries equally far (claim
  // batches-normalized). With larger batches a query still moves W in no larger share of the steps than that of its
  // batches, which may be less than its share of the multipliers.
  const bool as_long_as_gradients =
      rule.kind == StepKind::scaled || (rule.kind == StepKind::mirror && !settings.normalize);
  if (settings.batch > 0 && !as_long_as_gradients) return std::nullopt;
  // With decay W stays bounded; with dropout or smoothed labels it may.
  if (rule.weight_decay > 0 || settings.dropout > 0 || settings.label_smoothing > 0) return std::nullopt;
  switch (settings.optimizer) {
    case Optimizer::gd:
    case Optimizer::ngd:
    case Optimizer::polyak:
      if (factored) return ImpliedNorm{Norm::nuclear(), false, "gradient descent on K and Q"};
      return ImpliedNorm{Norm::frobenius(), ordinary && !momentum, "gradient descent on W"};
    case Optimizer::mirror:
      if (factored) return std::nullopt;
      return ImpliedNorm{Norm::entrywise(settings.power), ordinary, "mirror descent on W"};
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::signum:
    case Optimizer::lion:
      if (factored) return std::nullopt;
      return ImpliedNorm{Norm::largest(), false, "steps of sign or Adam are steepest in the largest entry"};
    case Optimizer::muon:
      return ImpliedNorm{Norm::spectral(), false, "spectral steps"};
    case Optimizer::steepest:
      if (factored && settings.norm == Norm::frobenius())
        return ImpliedNorm{Norm::nuclear(), false, "gradient descent on K and Q"};
      if (factored && settings.norm != Norm::spectral()) return std::nullopt;
      return ImpliedNorm{settings.norm, ordinary && settings.norm == Norm::frobenius() && !factored && !momentum,
                         "steepest descent in this norm"};
  }
  throw std::logic_error("unknown optimizer");
}

std::optional<ImpliedNorm> implied_norm_of_words(std::string_view words) {
  const auto settings = rule_from_words(words);
  return settings ? implied_norm(*settings) : std::nullopt;
}

MarginTrend margin_trend(std::span<const Index> steps, std::span<const double> rho, double resolution) {
  if (steps.size() != rho.size()) refuse("{} steps for {} values of rho; must be as many", steps.size(), rho.size());
  MarginTrend trend;
  if (steps.empty()) return trend;
  const double from = static_cast<double>(steps.back()) / 10;
  std::vector<double> known;
  std::vector<std::pair<double, double>> logs;  // of step and of 1 − ρ
  for (std::size_t r = 0; r < rho.size(); ++r) {
    const auto step = static_cast<double>(steps[r]);
    if (step < from || std::isnan(rho[r])) continue;
    known.push_back(rho[r]);
    if (step > 0 && 1 - rho[r] > std::max(resolution, 0.0)) logs.emplace_back(std::log(step), std::log(1 - rho[r]));
  }
  if (known.size() >= 2) trend.rises = known.back() > known.front();
  if (logs.size() < 3) return trend;
  double x = 0, y = 0, xx = 0, xy = 0;  // means first, so that large steps cost no digits
  const auto count = static_cast<double>(logs.size());
  for (const auto& [step, share] : logs) x += step / count, y += share / count;
  for (const auto& [step, share] : logs) xx += (step - x) * (step - x), xy += (step - x) * (share - y);
  if (logs.front().first < logs.back().first) trend.exponent = xy / xx;
  return trend;
}

}  // namespace attsvm

namespace attsvm::internal {

double smallest_asked(const MarginProblem& problem, const RowMatrix& W) {
  const Eigen::VectorXd values = problem.values(W);
  double smallest = kInfinity;
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k) && problem.rhs(k) > 0) smallest = std::min(smallest, values(k) / problem.rhs(k));
  }
  return smallest < kInfinity ? smallest : kNaN;
}

}  // namespace attsvm::internal
