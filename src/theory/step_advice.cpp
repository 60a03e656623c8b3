#include <fmt/format.h>

#include <cmath>

#include "attsvm/theory.h"
#include "theory/adam_pace.h"
#include "train/optimizers.h"
#include "train/settings.h"

namespace attsvm {
namespace {

using namespace internal;

/// Adam has turned to its SVM where AdamPace::fading times steps is above this (docs/optimizers.md).
constexpr double kForgotten = 2.5;

std::string adam_advice(const TrainSettings& settings, Index steps, double margin) {
  const auto& betas = *settings.betas;
  const double epsilon = *settings.epsilon;
  const AdamPace pace = adam_pace(settings.step, betas[0], betas[1], margin);
  const double faded = pace.fading * static_cast<double>(steps);
  std::string advice;
  if (faded < kForgotten) {
    advice = fmt::format(
        "second moments still hold early gradients (steps x (1 - b2 e^2r) is {:.2g}, and {} is where that changes): "
        "take "
        "smaller steps, more of them, or a smaller second beta",
        faded, kForgotten);
  }
  if (epsilon > 0) {
    advice += fmt::format("{}epsilon {} stops the smallest gap between logits at about {:.0f}; 0 does not",
                          advice.empty() ? "" : "; ", epsilon, -std::log(epsilon));
  }
  return advice;
}

}  // namespace

std::string step_advice(std::string_view words, Index steps, double margin) {
  const std::optional<TrainSettings> given = rule_from_words(words);
  if (!given || given->param == Parametrization::KQ || !(margin > 0)) return "";  // K Qᵀ grows at no constant pace
  const TrainSettings settings = completed(*given);
  const StepRule rule = rule_of(settings);
  if (rule.kind == StepKind::adam) return adam_advice(settings, steps, margin);
  if (rule.kind != StepKind::steepest || !rule.averages()) return "";
  // Gradients fall like e^{−gap}. Past ones outweigh new ones in the average where that is faster than it forgets.
  const double memory = std::max(rule.betas[0], rule.betas[1]), forgets = -std::log(memory);
  const double growth = settings.step * margin;
  if (!(growth > forgets / 2)) return "";
  return fmt::format(
      "steps of {} raise the smallest gap between logits by up to {:.2g} each, and the average over past gradients "
      "forgets at {:.2g} per step: steps below {:.1g} let it follow",
      settings.step, growth, forgets, forgets / margin / 4);
}

}  // namespace attsvm
