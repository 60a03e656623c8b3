#include "train/settings.h"

#include <charconv>
#include <cmath>

#include "base/limits.h"
#include "base/refuse.h"
#include "train/many_heads.h"
#include "train/usual_records.h"

namespace attsvm {

using namespace internal;

namespace {

template <class Kind>
std::string_view name_among(Kind kind) {
  return kNames<Kind>.at(static_cast<std::size_t>(kind));
}

}  // namespace

std::string_view name_of(Loss loss) { return name_among(loss); }
std::string_view name_of(Arithmetic arithmetic) { return name_among(arithmetic); }
std::string_view name_of(Parametrization param) { return name_among(param); }
std::string_view name_of(Optimizer optimizer) { return name_among(optimizer); }
std::string_view name_of(Schedule schedule) { return name_among(schedule); }
std::string_view name_of(Init init) { return name_among(init); }
std::string_view name_of(Selector selector) { return name_among(selector); }
std::string_view name_of(TrainStop stop) { return name_among(stop); }

std::string words_of(const TrainSettings& given) {
  const TrainSettings settings = completed(given), usual = completed({.optimizer = given.optimizer});
  std::vector<std::string> always, others;
  for_each_setting([&](const Setting& setting, auto member) {
    const bool as_usual = settings.*member == usual.*member ||
                          (setting.name == "head_epsilon" && settings.head_epsilon == settings.epsilon);
    if (setting.words.empty() || (!setting.always && as_usual)) return;
    auto& list = setting.always ? always : others;
    list.push_back(fmt::format(fmt::runtime(setting.words), text_of(settings, member)));
  });
  always.insert(always.end(), others.begin(), others.end());
  return fmt::format("{}", fmt::join(always, ", "));
}

}  // namespace attsvm

namespace attsvm::internal {
namespace {

void require(bool holds, std::string_view name, double value, std::string_view rule) {
  if (!holds) refuse("{} = {}; must be {}", name, value, rule);
}

/// Finite and at least 0.
void require_size(std::string_view name, double value) {
  require(std::isfinite(value) && value >= 0, name, value, "a number from 0 up");
}

void require_count(std::string_view name, Index value, Index least) {
  if (value < least) refuse("{} = {}; must be a whole number from {} up", name, value, least);
}

constexpr double kLeastConcentration = 1e-3, kMostConcentration = 1e5;  // draws above take longer than they are worth
constexpr double kMostTemperature = 1e6;
constexpr double kMostCount = 1e15;  // of heads, queries or steps that words are taken to mean: exact as a double

/// The number that ends a phrase which begins so; empty if it does not.
std::optional<double> number_after(std::string_view beginning, std::string_view phrase) {
  if (!phrase.starts_with(beginning)) return std::nullopt;
  double number = 0;
  const char* last = phrase.data() + phrase.size();
  const auto [end, error] = std::from_chars(phrase.data() + beginning.size(), last, number);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

void require_usable_selector(const TrainSettings& settings) {
  require_size("entropy", settings.entropy);
  require(settings.concentration >= kLeastConcentration && settings.concentration <= kMostConcentration,
          "concentration", settings.concentration,
          fmt::format("from {} to {}", kLeastConcentration, kMostConcentration));
  for (const double temperature : settings.temperature) {
    require(temperature >= 1 / kMostTemperature && temperature <= kMostTemperature, "temperature", temperature,
            fmt::format("from {} to {}", 1 / kMostTemperature, kMostTemperature));
  }
  const bool soft = settings.selector == Selector::soft;
  if (settings.selector != Selector::dirichlet && settings.concentration != TrainSettings{}.concentration)
    refuse("concentration has no meaning without selector = dirichlet");
  if (!soft && settings.dropout > 0)
    refuse("dropout is for the soft selector; this one is {}", name_of(settings.selector));
  if (soft && settings.entropy == 0) return;
  const std::string what = soft ? "entropy" : fmt::format("the {} selector", name_of(settings.selector));
  if (settings.arithmetic == Arithmetic::plain) refuse("{} needs exact arithmetic", what);
  if (settings.optimizer == Optimizer::polyak) refuse("polyak steps have no meaning with {}", what);
}

std::vector<std::string_view> phrases_of(std::string_view words) {
  constexpr std::string_view kComma = ", ";
  std::vector<std::string_view> phrases;
  for (;;) {
    const std::size_t at = words.find(kComma);
    phrases.push_back(words.substr(0, at));
    if (at == std::string_view::npos) return phrases;
    words.remove_prefix(at + kComma.size());
  }
}

}  // namespace

std::string rule_words(const TrainSettings& given) {
  const TrainSettings settings = completed(given);
  std::vector<std::string> words;
  for_each_setting([&](const Setting& setting, auto member) {
    constexpr std::array kOfRule{"optimizer", "momentum", "betas", "newton_schulz", "epsilon", "weight_decay"};
    if (std::find(kOfRule.begin(), kOfRule.end(), setting.name) == kOfRule.end()) return;
    const std::string value = text_of(settings, member);
    if (value != "0" && value != "0,0") words.push_back(fmt::format(fmt::runtime(setting.words), value));
  });
  return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<TrainSettings> rule_from_words(std::string_view words) {
  constexpr std::string_view kTemperature = "temperature ", kHeads = " heads", kSteps = " steps";
  const std::vector<std::string_view> phrases = phrases_of(words);
  if (phrases.size() < 2) return std::nullopt;
  const auto param = value_named<Parametrization>(phrases[0]);
  TrainSettings settings{.step = kNaN};
  if (!param || !set_optimizer(phrases[1], settings).empty()) return std::nullopt;
  settings.param = *param;
  constexpr std::string_view kBetas = "betas ", kSchedule = " schedule", kNewtonSchulz = " Newton-Schulz iterations",
                             kSelector = " selector";
  for (const std::string_view phrase : phrases) {
    if (const auto momentum = number_after("momentum ", phrase)) settings.momentum = momentum;
    if (const auto step = number_after("step ", phrase)) settings.step = *step;
    if (const auto epsilon = number_after("epsilon ", phrase)) settings.epsilon = epsilon;
    if (const auto decay = number_after("weight decay ", phrase)) settings.weight_decay = decay;
    if (const auto dropout = number_after("dropout ", phrase)) settings.dropout = *dropout;
    if (const auto entropy = number_after("entropy ", phrase)) settings.entropy = *entropy;
    if (const auto smoothing = number_after("label smoothing ", phrase)) settings.label_smoothing = *smoothing;
    if (const auto batch = number_after("batches of ", phrase); batch && *batch >= 1 && *batch < kMostCount)
      settings.batch = static_cast<Index>(*batch);
    if (phrase == "one norm over all heads") settings.shared_norm = true;
    if (phrase.ends_with(kSteps)) {
      const auto steps = number_after("", phrase.substr(0, phrase.size() - kSteps.size()));
      if (steps && *steps >= 0 && *steps <= kMostCount) settings.steps = static_cast<Index>(*steps);
    }
    if (phrase.ends_with(kHeads)) {
      const auto heads = number_after("", phrase.substr(0, phrase.size() - kHeads.size()));
      if (heads && *heads >= 1 && *heads < kMostCount) settings.heads = static_cast<Index>(*heads);
    }
    if (phrase.starts_with(kTemperature)) {
      const std::size_t colon = phrase.find(':');
      const auto first = number_after(kTemperature, phrase.substr(0, colon));
      const auto last = colon == std::string_view::npos ? first : number_after("", phrase.substr(colon + 1));
      if (first && last) settings.temperature = {*first, *last};
    }
    if (phrase.ends_with(kNewtonSchulz)) settings.newton_schulz = 1;  // how many does not matter to the rule
    if (phrase.ends_with(kSelector))
      settings.selector =
          value_named<Selector>(phrase.substr(0, phrase.size() - kSelector.size())).value_or(settings.selector);
    if (phrase.ends_with(kSchedule))
      settings.schedule =
          value_named<Schedule>(phrase.substr(0, phrase.size() - kSchedule.size())).value_or(settings.schedule);
    const std::size_t comma = phrase.find(',');
    if (!phrase.starts_with(kBetas) || comma == std::string_view::npos) continue;
    const auto first = number_after(kBetas, phrase.substr(0, comma)),
               second = number_after("", phrase.substr(comma + 1));
    if (first && second) settings.betas = {*first, *second};
  }
  return settings;
}

std::string journal_text(const TrainSettings& given) {
  const TrainSettings settings = completed(given);
  std::string text;
  for_each_setting([&](const Setting& setting, auto member) {
    if (setting.name == "head_epsilon") {
      text.back() = ',';  // ends the line of epsilon
    } else {
      text += setting.name;
      std::replace(text.end() - static_cast<std::ptrdiff_t>(setting.name.size()), text.end(), '_', '-');
      text += ' ';
    }
    text += text_of(settings, member) + '\n';
  });
  return text;
}

RecordPlan usual_records(Index steps, Index numbers) {
  constexpr Index kMost = 100, kMemory = Index{1} << 25;
  return RecordPlan::spread(steps, std::clamp<Index>(kMemory / numbers, 2, kMost));
}

RecordPlan usual_records(const AttentionTask& task, const TrainSettings& settings) {
  return usual_records(settings.steps, settings.heads * task.key_size() * task.query_size());
}

void require_usable(const TrainSettings& settings) {
  require(std::isfinite(settings.step) && settings.step > 0, "step", settings.step, "a number above 0");
  require_count("steps", settings.steps, 0);
  if (settings.epsilon) require_size("epsilon", *settings.epsilon);
  if (settings.head_epsilon) require_size("epsilon of the head", *settings.head_epsilon);
  require_size("ridge", settings.ridge);
  if (settings.weight_decay) require_size("weight decay", *settings.weight_decay);
  require_size("stop direction", settings.stop_direction);
  require_size("time limit", settings.time_limit);
  require(settings.dropout >= 0 && settings.dropout < 1, "dropout", settings.dropout, "from 0 up, and below 1");
  require(settings.label_smoothing >= 0 && settings.label_smoothing < 1, "label smoothing", settings.label_smoothing,
          "from 0 up, and below 1");
  if (settings.label_smoothing > 0 && settings.loss != Loss::logistic)
    refuse("label smoothing is for the logistic loss; this one is {}", name_of(settings.loss));
  require_count("batch", settings.batch, 0);
  require_usable_selector(settings);
  require_count("record every", settings.record.every, 0);
  for (std::size_t k = 0; k < settings.record.at.size(); ++k) {
    const Index step = settings.record.at[k];
    if (step < 0 || step > settings.steps) {
      refuse("record at {}; must be a number of steps, 0 to {}", step, settings.steps);
    }
    if (k > 0 && step <= settings.record.at[k - 1]) refuse("record at {}: steps must ascend", step);
  }
  require_count("width", settings.width, 0);
  if (settings.width > 0 && settings.param != Parametrization::KQ) refuse("width has no meaning without param = KQ");
  require_usable_optimizer(settings);
  require_usable_heads(settings);
  if (settings.optimizer != Optimizer::polyak) return;
  if (settings.joint) refuse("polyak steps need a fixed head: L* is not known while the head is trained");
  if (settings.dropout > 0) refuse("polyak steps have no meaning with dropout");
  if (settings.label_smoothing > 0) refuse("polyak steps have no meaning with label smoothing");
}

void require_usable(const TrainSettings& settings, const AttentionTask& task) {
  require_usable(settings);
  if (settings.param == Parametrization::p && task.query_size() != 1) {
    refuse("param = p needs queries of size 1; these have size {}", task.query_size());
  }
  require_usable_heads(settings, task);
  if (task.next_token()) {
    if (settings.joint) refuse("a next-token task has no head that could be trained");
    if (settings.dropout > 0) refuse("a next-token task is trained without dropout: it may drop all of the label");
    if (settings.label_smoothing > 0) refuse("a next-token task is trained without label smoothing");
    if (settings.selector != Selector::soft) refuse("a next-token task is trained with the soft selector alone");
    if (settings.entropy > 0) refuse("a next-token task is trained without entropy in what is minimised");
    if (settings.optimizer == Optimizer::polyak) refuse("polyak steps need a linear head; a next-token task has none");
    if (settings.arithmetic == Arithmetic::plain && settings.loss != Loss::logistic)
      refuse("plain arithmetic of a next-token task has the logistic loss only");
  }
  if (settings.optimizer != Optimizer::polyak) return;
  if (task.head().kind != HeadKind::linear && task.head().kind != HeadKind::none) {
    refuse("polyak steps need a linear head; this one is {}", name_of(task.head().kind));
  }
}

}  // namespace attsvm::internal
