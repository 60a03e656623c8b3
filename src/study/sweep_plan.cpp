#include "study/sweep_plan.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>

#include "attsvm/files.h"
#include "base/nearest.h"
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
  refuse("{} = \"{}\"; {}", field, text, suggestion(text, words));
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

/// Replaces every point by one point per value. A setting that the file leaves out changes nothing.
template <class Value, class Set>
void cross(SweepPlan& plan, const std::string& name, const std::vector<Value>& values, Set&& set) {
  constexpr std::size_t kMostPoints = 10'000;
  if (values.empty()) return;
  plan.settings.push_back({name, values.size() > 1});
  std::vector<SweepPoint> all;
  if (plan.points.size() * values.size() > kMostPoints) refuse("more than {} combinations", kMostPoints);
  for (const SweepPoint& point : plan.points) {
    for (const Value& value : values) {
      all.push_back(point);
      set(all.back(), value);
      all.back().values.emplace_back(value);
    }
  }
  plan.points = std::move(all);
}

/// The files that patterns such as mine/*.npz match, as a shell finds and sorts them.
std::vector<std::string> matching(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    for (std::size_t k = 0; status == 0 && k < found.gl_pathc; ++k) {
      const std::string file = found.gl_pathv[k];
      if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
    }
    ::globfree(&found);
    if (status != 0) refuse("files = \"{}\"; matches no file", pattern);
  }
  return files;
}

/// Tasks of the user's own, instead of drawn ones.
void parse_files(Fields& fields, SweepPlan& plan) {
  for (const char* other : {"task", "sizes"}) {
    if (fields.has(other)) refuse("files and {} cannot both be given: files are the tasks", other);
  }
  plan.points.resize(1);
  Threads alone(1);
  cross(plan, "file", matching(fields.texts("files")), [&](SweepPoint& point, const std::string& file) {
    point.task = std::make_shared<const AttentionTask>(load_task(file, alone));
    if (!point.task->select() && point.task->head().kind == HeadKind::none)
      refuse("{}: has neither select nor head; one of them must say which tokens to keep", file);
  });
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
  if (fields.has("epsilon")) settings.epsilon = fields.number("epsilon", 0, 0);
  settings.ridge = fields.number("ridge", 0, 0);
  settings.normalize = fields.flag("normalize", false);
  settings.init = Init::random;
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
  vary("init", [](const std::string& field, const std::string& text, TrainSettings& training) {
    training.init = one_of(field, text, {"zero", "random"}) == "zero" ? Init::zero : Init::random;
  });
  cross(plan, "step", fields.numbers("step", 0), [](SweepPoint& point, double value) { point.training->step = value; });
  cross(plan, "steps", fields.wholes("steps", 1),
        [](SweepPoint& point, Index value) { point.training->steps = value; });
  fields.done();
}

void parse_measures(Fields& fields, SweepPlan& plan) {
  plan.measures = fields.texts("measure");
  if (plan.measures.empty()) refuse("measure is missing");
  std::vector<std::string> words;
  for (const SweepMeasure& one : sweep_measures()) words.push_back(one.name);
  for (const std::string& measure : plan.measures) {
    one_of("measure", measure, words);
    if (sweep_measure(measure).training && !fields.has("train")) refuse("measure = \"{}\"; needs train", measure);
  }
}

/// One seed is that of the sweep, which --seed replaces; several are a setting like others.
void parse_seeds(Fields& fields, SweepPlan& plan) {
  const std::vector<Index> seeds = fields.wholes("seed", 0);
  if (seeds.size() == 1) plan.seed = static_cast<std::uint64_t>(seeds.front());
  if (seeds.size() < 2) return;
  cross(plan, "seed", seeds, [](SweepPoint& point, Index value) { point.seed = static_cast<std::uint64_t>(value); });
}

/// Chooses the setting on the x axis: a varied one that is a number, else the files in their order.
void choose_x(Fields& fields, SweepPlan& plan) {
  std::vector<std::string> numeric;
  bool files = false;
  for (std::size_t k = 0; k < plan.settings.size(); ++k) {
    const SweepSetting& setting = plan.settings[k];
    if (setting.varied && plan.points.front().values[k].is_number() && setting.name != "seed")
      numeric.push_back(setting.name);
    files = files || (setting.varied && setting.name == "file");
  }
  plan.x = fields.text("x", !numeric.empty() ? numeric.back() : files ? "file" : "");
  if (fields.has("x") && numeric.empty())
    refuse("x = \"{}\"; no setting has a list of numbers to draw against", plan.x);
  if (fields.has("x")) one_of("x", plan.x, numeric);
}

/// Tries every point, so that what cannot be drawn or trained is refused before anything runs.
void require_runnable(const SweepPlan& plan) {
  Threads alone(1);
  for (const SweepPoint& point : plan.points) {
    std::optional<Drawn> drawn;
    if (!point.task) drawn = with_place("task and sizes", [&] { return generate(point.recipe, 0); });
    const AttentionTask& task = point.task ? *point.task : drawn->task;
    if (!point.training) continue;
    const std::string what = point.task ? point.values.front().get<std::string>() : "task.kind = \"" + plan.kind + '"';
    if (task.head().kind == HeadKind::none)
      refuse("train cannot be combined with {}: such tasks have no head, and so no loss; leave train out", what);
    with_place("train", [&] { Trainer(task, *point.training, alone); });
  }
}

}  // namespace

const std::vector<SweepMeasure>& sweep_measures() {
  static const std::vector<SweepMeasure> measures{
      {.name = "feasible",
       .words = "share that can be separated",
       .meaning = "1 where the selected tokens can be separated, else 0",
       .share = true},
      {.name = "objective_fro",
       .words = "least Frobenius norm",
       .meaning = "smallest Frobenius norm of a separating W"},
      {.name = "objective_nuc", .words = "least nuclear norm", .meaning = "smallest nuclear norm of a separating W"},
      {.name = "rank_fro", .words = "rank, Frobenius", .meaning = "rank of the Frobenius solution"},
      {.name = "rank_nuc", .words = "rank, nuclear", .meaning = "rank of the nuclear solution"},
      {.name = "support_share",
       .words = "share of support rows",
       .meaning = "share of the rows of the Frobenius SVM that are met with equality",
       .up_to_one = true},
      {.name = "loss", .words = "loss", .meaning = "at the end of training", .training = true},
      {.name = "norm", .words = "norm of W", .meaning = "Frobenius norm of W at the end", .training = true},
      {.name = "attention",
       .words = "weight of the largest token",
       .meaning = "softmax weight of the largest token at the end, mean over queries",
       .training = true,
       .up_to_one = true},
      {.name = "correlation_fro",
       .words = "correlation, Frobenius SVM",
       .meaning = "of W with the Frobenius SVM of the tokens it selects",
       .training = true,
       .up_to_one = true},
      {.name = "correlation_nuc",
       .words = "correlation, nuclear SVM",
       .meaning = "of W with the nuclear SVM of the tokens it selects",
       .training = true,
       .up_to_one = true},
      {.name = "global",
       .words = "share at the optimal tokens",
       .meaning = "1 where the selection is the optimal one, else 0",
       .training = true,
       .share = true},
      {.name = "local",
       .words = "share at locally optimal tokens",
       .meaning = "1 where it is locally optimal and not optimal, else 0",
       .training = true,
       .share = true}};
  return measures;
}

const SweepMeasure& sweep_measure(const std::string& name) {
  for (const SweepMeasure& one : sweep_measures()) {
    if (one.name == name) return one;
  }
  throw std::logic_error("unknown measure");
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
  for (const StudyFacts& facts : named_studies()) {
    if (facts.name == plan.name) refuse("name = \"{}\"; is the name of an experiment of attsvm", plan.name);
  }
  plan.title = fields.text("title", plan.name);
  plan.runs = fields.whole("runs", plan.runs, 1);
  plan.require_feasible = fields.flag("require_feasible", false);
  if (fields.has("files")) {
    parse_files(fields, plan);
  } else {
    plan.points = {{.recipe = parse_task(fields.object("task"), plan.kind)}};
    parse_sizes(fields.object("sizes"), plan);
  }
  parse_measures(fields, plan);
  Fields training = fields.object("train");
  if (fields.has("train")) parse_training(training, plan);
  parse_seeds(fields, plan);
  choose_x(fields, plan);
  fields.done();
  require_runnable(plan);
  return plan;
}

}  // namespace attsvm::internal
