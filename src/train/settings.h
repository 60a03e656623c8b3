#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "attsvm/train.h"
#include "train/optimizers.h"

namespace attsvm::internal {

/// The names of the values of an enumeration, in the order of the values.
template <class Kind>
inline constexpr std::array<std::string_view, 0> kNames{};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Parametrization>{"W", "KQ", "p"};
template <>
inline constexpr std::array<std::string_view, 10> kNames<Optimizer>{"gd",    "ngd",    "polyak", "mirror", "adam",
                                                                    "adamw", "signum", "lion",   "muon",   "steepest"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Schedule>{"constant", "sqrt", "cosine"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Loss>{"logistic", "exponential", "linear"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Arithmetic>{"exact", "plain"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Init>{"usual", "zero", "random"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Selector>{"soft", "gumbel", "dirichlet"};
template <>
inline constexpr std::array<std::string_view, 5> kNames<TrainStop>{"steps", "zero gradient", "direction", "overflow",
                                                                   "asked"};

/// The value with this name; nullopt if there is none.
template <class Kind>
std::optional<Kind> value_named(std::string_view name) {
  const auto at = std::find(kNames<Kind>.begin(), kNames<Kind>.end(), name);
  if (at == kNames<Kind>.end()) return std::nullopt;
  return static_cast<Kind>(at - kNames<Kind>.begin());
}

/// What files, messages and bindings say about a member of TrainSettings.
struct Setting {
  std::string_view name;   ///< in Python; the option of the command line has - for _
  std::string_view words;  ///< in words_of(), where {} is the value; empty: words_of() leaves it out
  bool always = false;     ///< words_of() has it even if it is the default
};

/// Calls visit(setting, member) for every member that determines what a run computes, in the order of the command line.
/// Journals hold the names and values in this order: a change of either makes older journals useless.
template <class Visit>
void for_each_setting(Visit&& visit) {
  using S = TrainSettings;
  visit(Setting{"param", "{}", true}, &S::param);
  visit(Setting{"joint", "head trained too"}, &S::joint);
  visit(Setting{"heads", "{} heads"}, &S::heads);
  visit(Setting{"shared_norm", "one norm over all heads"}, &S::shared_norm);
  visit(Setting{"width", "width {}"}, &S::width);
  visit(Setting{"optimizer", "{}", true}, &S::optimizer);
  visit(Setting{"momentum", "momentum {}"}, &S::momentum);
  visit(Setting{"betas", "betas {}"}, &S::betas);
  visit(Setting{"newton_schulz", "{} Newton-Schulz iterations"}, &S::newton_schulz);
  visit(Setting{"normalize", "normalized"}, &S::normalize);
  visit(Setting{"step", "step {}", true}, &S::step);
  visit(Setting{"steps", "{} steps", true}, &S::steps);
  visit(Setting{"schedule", "{} schedule"}, &S::schedule);
  visit(Setting{"epsilon", "epsilon {}"}, &S::epsilon);
  visit(Setting{"head_epsilon", "epsilon {} for the head"}, &S::head_epsilon);
  visit(Setting{"ridge", "ridge {}"}, &S::ridge);
  visit(Setting{"weight_decay", "weight decay {}"}, &S::weight_decay);
  visit(Setting{"dropout", "dropout {}"}, &S::dropout);
  visit(Setting{"batch", "batches of {}"}, &S::batch);
  visit(Setting{"loss", "{} loss", true}, &S::loss);
  visit(Setting{"label_smoothing", "label smoothing {}"}, &S::label_smoothing);
  visit(Setting{"selector", "{} selector"}, &S::selector);
  visit(Setting{"concentration", "concentration {}"}, &S::concentration);
  visit(Setting{"entropy", "entropy {}"}, &S::entropy);
  visit(Setting{"temperature", "temperature {}"}, &S::temperature);
  visit(Setting{"arithmetic", "{} arithmetic", true}, &S::arithmetic);
  visit(Setting{"init", "start {}"}, &S::init);
  visit(Setting{"seed", "seed {}", true}, &S::seed);
  visit(Setting{"instance", ""}, &S::instance);
  visit(Setting{"record", ""}, &S::record);
  visit(Setting{"stop_direction", "stop once the direction moves less than {}"}, &S::stop_direction);
}

/// A setting's value in words and journals. That of the optimizer includes the power or the norm, as on the command
/// line. The settings must be completed().
template <class Value>
std::string text_of(const TrainSettings& settings, Value TrainSettings::*member) {
  const Value& value = settings.*member;
  if constexpr (std::is_same_v<Value, RecordPlan>) {
    return fmt::format("{},every:{}", fmt::join(value.at, ","), value.every);
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    return fmt::format("{}", value.value());
  } else if constexpr (std::is_same_v<Value, std::optional<std::array<double, 2>>>) {
    return fmt::format("{},{}", value.value()[0], value.value()[1]);
  } else if constexpr (std::is_same_v<Value, std::array<double, 2>>) {
    return value[0] == value[1] ? fmt::format("{}", value[0]) : fmt::format("{}:{}", value[0], value[1]);
  } else if constexpr (std::is_same_v<Value, Optimizer>) {
    return optimizer_text(settings);
  } else if constexpr (std::is_enum_v<Value>) {
    return std::string(name_of(value));
  } else {
    return fmt::format("{}", value);
  }
}

/// The optimizer with all its numbers that are not 0, usual ones too: "muon, momentum 0.95, 5 Newton-Schulz
/// iterations".
std::string rule_words(const TrainSettings& settings);

/// What words_of() says of the rule: the parametrization, the number of heads and whether they share a norm, the
/// optimizer with its power or norm, momentum, betas, step, steps, schedule, epsilon, weight decay, dropout, batch,
/// label smoothing, selector, entropy, temperature, and whether there are Newton-Schulz iterations. All else is as
/// usual, and the step NaN if they do not say it. nullopt if the words do not begin with the first two.
std::optional<TrainSettings> rule_from_words(std::string_view words);

/// The settings as a journal holds them, by their names on the command line: runs are the same if these lines and the
/// starting points are.
std::string journal_text(const TrainSettings& settings);

/// The records of a run for which nothing else is asked: RecordPlan::spread, with fewer points where W is large, so
/// that they fill no more than 256 MiB.
RecordPlan usual_records(const AttentionTask& task, const TrainSettings& settings);

/// Throws InputError with the setting, its value and the rule unless the settings can be used for some task.
void require_usable(const TrainSettings& settings);
/// The same for this task.
void require_usable(const TrainSettings& settings, const AttentionTask& task);

}  // namespace attsvm::internal
