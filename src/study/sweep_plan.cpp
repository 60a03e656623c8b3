#include "study/sweep_plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/refuse.h"
#include "study/fields.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

const std::vector<std::pair<std::string, QueryPattern>> kPatterns{{"cross", QueryPattern::cross},
                                                                  {"self", QueryPattern::self},
                                                                  {"prompt", QueryPattern::prompt},
                                                                  {"causal", QueryPattern::causal}};
const std::vector<std::pair<std::string, HeadKind>> kHeads{
    {"linear", HeadKind::linear}, {"relu", HeadKind::hidden}, {"quadratic", HeadKind::quadratic}};
template <class Kind>
Kind choose(const std::string& field, const std::string& text, const std::vector<std::pair<std::string, Kind>>& kinds) {
  std::vector<std::string> words;
  for (const auto& [word, kind] : kinds) {
    if (word == text) return kind;
    words.push_back(word);
  }
  refuse("{} = \"{}\"; must be one of {}", field, text, fmt::join(words, ", "));
}

template <class Kind>
Kind choose(const std::string& field, const std::string& text) {
  return value_named<Kind>(one_of(field, text, {kNames<Kind>.begin(), kNames<Kind>.end()})).value();
}

/// "ngd", "mirror:3", "steepest:max", …
void choose_optimizer(const std::string& field, const std::string& text, TrainSettings& settings) {
  const std::string complaint = set_optimizer(text, settings);
  if (!complaint.empty()) refuse("{} = \"{}\"; {}", field, text, complaint);
}

Recipe parse_task(Fields fields, std::string& kind) {
  kind = fields.text("kind");
  Recipe recipe;
  std::vector<std::string> words;
  bool known = false;
  for (const RecipeKind& one : recipe_kinds()) {
    if (one.recipe.law >= Law::single_input) continue;  // data sets of fixed size: nothing to sweep
    words.emplace_back(one.name);
    if (one.name != kind) continue;
    recipe = one.recipe;
    known = true;
  }
  if (!known) one_of(fields.place_of("kind"), kind, words);
  if (fields.has("attention"))
    recipe.pattern = choose(fields.place_of("attention"), fields.text("attention"), kPatterns);
  if (fields.has("head")) recipe.head = choose(fields.place_of("head"), fields.text("head"), kHeads);
  recipe.hidden = fields.whole("hidden", recipe.hidden, 1);
  recipe.lambda = fields.number("lambda", recipe.lambda, -1e100);
  recipe.shortest = fields.whole("shortest", recipe.shortest, 1);
  recipe.rank = fields.whole("rank", recipe.rank, 1);
  fields.done();
  return recipe;
}

/// Replaces every point by one point per value, and marks the setting as varied if there are several values.
template <class Value, class Set>
void cross(SweepPlan& plan, const std::string& name, const std::vector<Value>& values, Set&& set) {
  constexpr std::size_t kMostPoints = 10'000;
  if (values.empty()) return;
  if (values.size() > 1) plan.varied.push_back(name);
  std::vector<SweepPoint> all;
  if (plan.points.size() * values.size() > kMostPoints) refuse("more than {} combinations", kMostPoints);
  for (const SweepPoint& point : plan.points) {
    for (const Value& value : values) {
      all.push_back(point);
      set(all.back(), value);
      if (values.size() > 1) all.back().values.emplace_back(value);
    }
  }
  plan.points = std::move(all);
}

void parse_sizes(Fields fields, SweepPlan& plan) {
  const auto size = [&](const char* name, Index Recipe::*member) {
    cross(plan, name, fields.wholes(name, 1), [&](SweepPoint& point, Index value) { point.recipe.*member = value; });
  };
  size("n", &Recipe::n);
  size("T", &Recipe::T);
  size("d", &Recipe::d);
  size("dz", &Recipe::dz);
  fields.done();
}

void parse_training(Fields fields, SweepPlan& plan) {
  TrainSettings settings;
  settings.step = fields.number("step", settings.step, 0);
  settings.steps = fields.whole("steps", settings.steps, 1);
  if (fields.has("epsilon")) settings.epsilon = fields.number("epsilon", 0, 0);
  settings.ridge = fields.number("ridge", 0, 0);
  settings.normalize = fields.flag("normalize", false);
  const std::string init = one_of(fields.place_of("init"), fields.text("init", "random"), {"zero", "random"});
  settings.init = init == "zero" ? Init::zero : Init::random;
  for (SweepPoint& point : plan.points) point.training = settings;
  const auto vary = [&](const std::string& name, auto&& set) {
    cross(plan, name, fields.texts(name),
          [&](SweepPoint& point, const std::string& text) { set(fields.place_of(name), text, *point.training); });
  };
  const auto vary_choice = [&]<class Kind>(const std::string& name, Kind TrainSettings::*member) {
    vary(name, [&](const std::string& field, const std::string& text, TrainSettings& training) {
      training.*member = choose<Kind>(field, text);
    });
  };
  vary_choice("param", &TrainSettings::param);
  vary("optimizer", choose_optimizer);
  vary_choice("arithmetic", &TrainSettings::arithmetic);
  vary_choice("loss", &TrainSettings::loss);
  fields.done();
}

void parse_measures(Fields& fields, SweepPlan& plan) {
  plan.measures = fields.texts("measure");
  if (plan.measures.empty()) refuse("measure is missing");
  std::vector<std::string> words;
  for (const Column& column : solve_measures()) words.push_back(column.name);
  for (const Column& column : train_measures()) {
    const bool asked = std::find(plan.measures.begin(), plan.measures.end(), column.name) != plan.measures.end();
    if (asked && !fields.has("train")) refuse("measure = \"{}\"; needs train", column.name);
    words.push_back(column.name);
  }
  for (const std::string& measure : plan.measures) one_of("measure", measure, words);
}

/// Chooses the setting on the x axis: a varied one that is a number.
void choose_x(Fields& fields, SweepPlan& plan) {
  std::vector<std::string> numeric;
  for (const std::string& name : plan.varied) {
    if (name == "n" || name == "T" || name == "d" || name == "dz") numeric.push_back(name);
  }
  plan.x = fields.text("x", numeric.empty() ? "" : numeric.back());
  if (!plan.x.empty() && numeric.empty()) refuse("x = \"{}\"; sizes has no list to draw against", plan.x);
  if (!plan.x.empty()) one_of("x", plan.x, numeric);
}

}  // namespace

const std::vector<Column>& solve_measures() {
  static const std::vector<Column> columns{
      {"feasible", "1 where the selected tokens can be separated, else 0"},
      {"objective_fro", "smallest Frobenius norm of a separating W"},
      {"objective_nuc", "smallest nuclear norm of a separating W"},
      {"rank_fro", "rank of the Frobenius solution"},
      {"rank_nuc", "rank of the nuclear solution"},
      {"support_share", "share of the rows of the Frobenius SVM that are met with equality"}};
  return columns;
}

const std::vector<Column>& train_measures() {
  static const std::vector<Column> columns{
      {"loss", "at the end of training"},
      {"norm", "Frobenius norm of W at the end"},
      {"attention", "softmax weight of the largest token at the end, mean over queries"},
      {"correlation_fro", "of W with the Frobenius SVM of the tokens it selects"},
      {"correlation_nuc", "of W with the nuclear SVM of the tokens it selects"},
      {"global", "1 where the selection is the optimal one, else 0"},
      {"local", "1 where it is locally optimal and not optimal, else 0"}};
  return columns;
}

SweepPlan parse_sweep(const nlohmann::json& file) {
  Fields fields(file, "");
  SweepPlan plan;
  plan.name = fields.text("name");
  const bool plain = !plan.name.empty() && plan.name.size() <= 64 &&
                     plan.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
                         std::string::npos;
  if (!plain)
    refuse("name = \"{}\"; must be letters, digits, - and _, at most 64 of them: it names a folder", plan.name);
  for (const StudyFacts& facts : published_studies()) {
    if (facts.name == plan.name) refuse("name = \"{}\"; is the name of a published experiment", plan.name);
  }
  plan.title = fields.text("title", plan.name);
  plan.runs = fields.whole("runs", plan.runs, 1);
  plan.seed = static_cast<std::uint64_t>(fields.whole("seed", 0, 0));
  plan.require_feasible = fields.flag("require_feasible", false);
  plan.points = {{.recipe = parse_task(fields.object("task"), plan.kind)}};
  parse_sizes(fields.object("sizes"), plan);
  parse_measures(fields, plan);
  Fields training = fields.object("train");
  if (fields.has("train")) parse_training(training, plan);
  choose_x(fields, plan);
  fields.done();
  Threads alone(1);
  for (const SweepPoint& point : plan.points) {
    const Drawn drawn = with_place("task and sizes", [&] { return generate(point.recipe, 0); });
    if (point.training && drawn.task.head().kind == HeadKind::none)
      refuse(
          "train cannot be combined with task.kind = \"{}\": such tasks have no head, and so no loss; leave train out",
          plan.kind);
    if (point.training) with_place("train", [&] { Trainer(drawn.task, *point.training, alone); });
  }
  return plan;
}

}  // namespace attsvm::internal
