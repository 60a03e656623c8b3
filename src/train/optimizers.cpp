#include "train/optimizers.h"

#include <fmt/ranges.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/refuse.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr Norm kFrobenius{}, kLargest{NormFamily::entrywise, std::numeric_limits<double>::infinity()},
    kSpectral{NormFamily::schatten, std::numeric_limits<double>::infinity()};

/// In the order of Optimizer.
constexpr std::array<OptimizerFacts, kNames<Optimizer>.size()> kOptimizers{{
    {.kind = StepKind::scaled, .momentum = 0},                                              // gd
    {.norm = kFrobenius, .momentum = 0, .epsilon = 0},                                      // ngd
    {.kind = StepKind::polyak},                                                             // polyak
    {.kind = StepKind::mirror, .epsilon = 0},                                               // mirror
    {.kind = StepKind::adam, .betas = {{.9, .999}}, .epsilon = 1e-8},                       // adam
    {.kind = StepKind::adam, .betas = {{.9, .999}}, .epsilon = 1e-8, .weight_decay = .01},  // adamw
    {.norm = kLargest, .momentum = .9, .epsilon = 0},                                       // signum
    {.norm = kLargest, .betas = {{.9, .99}}},                                               // lion
    {.norm = kSpectral, .momentum = .95, .epsilon = 0, .newton_schulz = true},              // muon
    {.momentum = 0, .epsilon = 0},                                                          // steepest
}};

/// The optimizers that have what `has` looks at, for messages: "adam, adamw and lion".
template <class Has>
std::string those_with(Has&& has) {
  std::string list;
  std::vector<std::string_view> names;
  for (std::size_t k = 0; k < kOptimizers.size(); ++k) {
    if (has(kOptimizers.at(k))) names.push_back(kNames<Optimizer>.at(k));
  }
  for (std::size_t k = 0; k < names.size(); ++k) {
    list += k == 0 ? "" : k + 1 == names.size() ? " and " : ", ";
    list += names[k];
  }
  return list;
}

void require_share(std::string_view name, double value) {
  if (!(value >= 0 && value < 1)) refuse("{} = {}; must be from 0 up, and below 1", name, value);
}

/// What people call optimizers that have another name here.
struct OtherName {
  std::string_view name, here;
};
constexpr std::array kOtherNames{
    OtherName{"sgd", "sgd is gd here; with a batch size it takes minibatches"},
    OtherName{"momentum", "momentum is an option of others here, such as gd and ngd"},
    OtherName{"sign", "sign descent is steepest:max here, and signum with momentum"},
    OtherName{"signsgd", "sign descent is steepest:max here, and signum with momentum"},
    OtherName{"spectral", "spectral descent is steepest:spec here, and muon with momentum"},
    OtherName{"rmsprop", "rmsprop is nearly adam with a first beta of 0"},
};

constexpr std::string_view kMirror = "mirror:", kSteepest = "steepest:";

}  // namespace

const OptimizerFacts& facts_of(Optimizer optimizer) { return kOptimizers.at(static_cast<std::size_t>(optimizer)); }

TrainSettings completed(const TrainSettings& settings) {
  const OptimizerFacts& facts = facts_of(settings.optimizer);
  TrainSettings whole = settings;
  if (!whole.momentum) whole.momentum = facts.momentum.value_or(0);
  if (!whole.betas) whole.betas = facts.betas.value_or(std::array<double, 2>{});
  if (!whole.epsilon) whole.epsilon = facts.epsilon.value_or(0);
  if (!whole.head_epsilon) whole.head_epsilon = whole.epsilon;
  if (!whole.weight_decay) whole.weight_decay = facts.weight_decay;
  if (settings.optimizer != Optimizer::steepest) whole.norm = facts.norm.value_or(Norm{});
  return whole;
}

StepRule rule_of(const TrainSettings& settings) {
  const OptimizerFacts& facts = facts_of(settings.optimizer);
  const TrainSettings whole = completed(settings);
  const double momentum = *whole.momentum;
  return {.kind = facts.kind,
          .norm = whole.norm,
          .betas = facts.betas ? *whole.betas : std::array<double, 2>{momentum, momentum},
          .epsilon = *whole.epsilon,
          .head_epsilon = *whole.head_epsilon,
          .weight_decay = *whole.weight_decay};
}

std::string optimizer_text(const TrainSettings& settings) {
  std::string text(name_of(settings.optimizer));
  if (settings.optimizer == Optimizer::mirror) text += fmt::format(":{}", settings.power);
  if (settings.optimizer == Optimizer::steepest) text += fmt::format(":{}", settings.norm.name());
  return text;
}

std::string set_optimizer(std::string_view text, TrainSettings& settings) {
  if (text.starts_with(kMirror)) {
    const char* end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data() + kMirror.size(), end, settings.power);
    settings.optimizer = Optimizer::mirror;
    return error == std::errc() && next == end && settings.power > 1 && std::isfinite(settings.power)
               ? ""
               : "mirror: must be followed by a power above 1, such as mirror:3";
  }
  if (text.starts_with(kSteepest)) {
    settings.optimizer = Optimizer::steepest;
    try {
      settings.norm = Norm::parse(text.substr(kSteepest.size()));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  const auto named = value_named<Optimizer>(text);
  if (named == Optimizer::mirror) return "mirror needs a power above 1, such as mirror:3";
  if (named == Optimizer::steepest) return "steepest needs a norm, such as steepest:max or steepest:spec";
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (lower != text && value_named<Optimizer>(lower)) return fmt::format("is written {} here", lower);
  for (const OtherName& other : kOtherNames) {
    if (lower == other.name) return std::string(other.here);
  }
  if (!named) return "must be gd, ngd, polyak, mirror:P, adam, adamw, signum, lion, muon or steepest:NORM";
  settings.optimizer = *named;
  return "";
}

void require_usable_optimizer(const TrainSettings& settings) {
  const OptimizerFacts& facts = facts_of(settings.optimizer);
  const std::string_view name = name_of(settings.optimizer);
  if (settings.momentum) {
    if (!facts.momentum && facts.betas) refuse("momentum has no meaning with {}, which has betas", name);
    if (!facts.momentum)
      refuse("momentum has no meaning with {}; it goes with {}", name,
             those_with([](const OptimizerFacts& one) { return one.momentum.has_value(); }));
    require_share("momentum", *settings.momentum);
  }
  if (settings.betas) {
    if (!facts.betas)
      refuse("betas have no meaning with {}; they go with {}", name,
             those_with([](const OptimizerFacts& one) { return one.betas.has_value(); }));
    require_share("first beta", settings.betas->front());
    require_share("second beta", settings.betas->back());
  }
  if (settings.newton_schulz < 0)
    refuse("newton-schulz = {}; must be a whole number from 0 up", settings.newton_schulz);
  if (settings.newton_schulz > 0 && !facts.newton_schulz)
    refuse("newton-schulz has no meaning with {}; it goes with muon", name);
  if (settings.optimizer == Optimizer::mirror) {
    if (!(std::isfinite(settings.power) && settings.power > 1)) refuse("power = {}; must be above 1", settings.power);
  } else if (settings.normalize) {
    refuse("normalize has no meaning without mirror descent");
  }
}

}  // namespace attsvm::internal
