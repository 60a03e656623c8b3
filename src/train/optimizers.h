#pragma once

#include <array>
#include <optional>
#include <string>

#include "attsvm/train.h"

namespace attsvm::internal {

/// What a step is made of.
enum class StepKind : std::uint8_t {
  scaled,    ///< along the gradient, as long as it is
  steepest,  ///< along the steepest direction of a norm
  polyak,
  mirror,
  adam,
};

/// What an optimizer does, which options it takes, and their usual values.
struct OptimizerFacts {
  StepKind kind = StepKind::steepest;
  std::optional<Norm> norm{};                    ///< of steepest steps; empty: TrainSettings::norm
  std::optional<double> momentum{};              ///< empty: takes none
  std::optional<std::array<double, 2>> betas{};  ///< empty: takes none
  std::optional<double> epsilon{};               ///< empty: has no effect
  double weight_decay = 0;
  bool newton_schulz = false;
};

const OptimizerFacts& facts_of(Optimizer optimizer);

/// A step with every number known.
struct StepRule {
  StepKind kind;
  Norm norm;
  /// Weights b1 and b2 of the past: a step is made from b1·m + (1−b1)·g, then m ← b2·m + (1−b2)·g. Momentum B is (B,B).
  std::array<double, 2> betas;
  double epsilon, head_epsilon, weight_decay;

  bool averages() const { return kind != StepKind::adam && (betas[0] > 0 || betas[1] > 0); }  ///< whether it has an m
};

StepRule rule_of(const TrainSettings& settings);

/// The settings with every number of the optimizer that is left out set to its usual value.
TrainSettings completed(const TrainSettings& settings);

/// "ngd", "mirror:3" or "steepest:lp:3".
std::string optimizer_text(const TrainSettings& settings);

/// Sets the optimizer, and P or the norm, from such a text. Returns what the text must be if it cannot be used, else an
/// empty string.
std::string set_optimizer(std::string_view text, TrainSettings& settings);

/// InputError unless momentum, betas, epsilons, Newton-Schulz iterations and the power fit the optimizer.
void require_usable_optimizer(const TrainSettings& settings);

}  // namespace attsvm::internal
