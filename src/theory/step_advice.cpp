#include "theory/step_advice.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/limits.h"
#include "theory/adam_pace.h"
#include "train/optimizers.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr double kClose = 0.95;   // of the largest margin: such a run needs no advice
constexpr double kSafe = 0.7;     // share of the largest step that leaves room
constexpr double kSettled = 4;    // times kAdamForgotten: well past the turn
constexpr double kReached = 0.7;  // share of log 1/ε from which on ε holds the gap back

/// How fast the smallest gap grows per step at the end of the run; NaN: not known.
double growth_of(const PacedRun& run) {
  const std::size_t count = run.steps.size();
  if (count < 2) return kNaN;
  return (run.gaps[count - 1] - run.gaps[count - 2]) / static_cast<double>(run.steps[count - 1] - run.steps[count - 2]);
}

std::string adam_advice(const TrainSettings& settings, const PacedRun& run) {
  const auto [b1, b2] = *settings.betas;
  if (b1 * b1 >= b2) return "the second beta must be above the square of the first, else steps may grow without bound";
  const double epsilon = *settings.epsilon, least = -std::log(epsilon), gap = run.gaps.back();
  if (epsilon > 0 && epsilon < 1 && gap > kReached * least)
    return fmt::format("epsilon {} stops the smallest gap between logits at about {:.0f}; 0 does not", epsilon, least);
  const auto steps = static_cast<double>(run.steps.back());
  if (!(adam_pace(settings.step, b1, b2, run.margin).fading * steps < kAdamForgotten)) return "";
  const double enough = b2_of_fading(settings.step, b1, run.margin, steps, kSettled * kAdamForgotten);
  return fmt::format(
      "second moments still hold early gradients: take {}smaller steps and more of them",
      enough < b2 ? fmt::format("a second beta of at most {:.3f}, or ", std::floor(1000 * enough) / 1000) : "");
}

}  // namespace

std::string step_advice(const PacedRun& run) {
  const std::optional<TrainSettings> given = rule_from_words(run.settings);
  const bool known = given && given->step > 0 && given->schedule == Schedule::constant && !run.steps.empty();
  if (!known || !(run.margin > 0) || run.rho > kClose) return "";
  const TrainSettings settings = completed(*given);
  const StepRule rule = rule_of(settings);
  const bool factored = settings.param == Parametrization::KQ;
  if (settings.newton_schulz > 0)
    return "Newton-Schulz iterations leave singular values spread around 1, and the margin levels off; U V' itself "
           "does not";
  if (rule.kind == StepKind::adam && !factored) return adam_advice(settings, run);
  if (rule.kind == StepKind::steepest && rule.averages()) {
    // Gradients fall like e^{−gap}. Past ones outweigh new ones in the average where that is faster than it forgets.
    // On W the gap grows by step·margin once the direction is right, and by less before. Of heads that share a norm
    // each moves by a share of the step that is known afterwards only; signs have no shares.
    const bool measured = factored || (settings.shared_norm && rule.norm != Norm::largest());
    const double growth = measured ? growth_of(run) : settings.step * run.margin, forgets = -std::log(rule.betas[1]);
    if (!(growth > forgets)) return "";
    const std::string step = measured ? "steps that are smaller, or shrink (a schedule)"
                                      : fmt::format("steps of about {:.2g}", kSafe * forgets / run.margin);
    return fmt::format(
        "the smallest gap between logits {} by {:.2g} per step, faster than the average over past gradients forgets "
        "({:.2g}): take {}",
        measured ? "grows" : "would grow", growth, forgets, step);
  }
  if (factored && rule.kind == StepKind::steepest && !rule.norm.is_frobenius())
    return "W = K Q' grows with the square of the steps taken: take smaller ones, or let them shrink (a schedule)";
  return "";
}

}  // namespace attsvm::internal
