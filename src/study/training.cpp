#include "study/training.h"

#include <stdexcept>

#include "attsvm/theory.h"
#include "train/settings.h"

namespace attsvm::internal {

Json json_of(const TrainSettings& given) {
  const TrainSettings settings = completed(given);
  Json json{{"param", name_of(settings.param)},
            {"optimizer", name_of(settings.optimizer)},
            {"arithmetic", name_of(settings.arithmetic)},
            {"loss", name_of(settings.loss)},
            {"step", settings.step},
            {"steps", settings.steps},
            {"epsilon", *settings.epsilon},
            {"ridge", settings.ridge},
            {"init", settings.init == Init::random ? "random" : "zero"}};
  if (settings.joint) json.update({{"joint", true}, {"epsilon_head", *settings.head_epsilon}});
  if (settings.optimizer == Optimizer::mirror)
    json.update({{"power", settings.power}, {"normalize", settings.normalize}});
  if (settings.optimizer == Optimizer::steepest) json["norm"] = settings.norm.name();
  // Only where they are not as usual: runs stored before studies could set them keep their key.
  const TrainSettings usual = completed({.optimizer = given.optimizer});
  if (settings.momentum != usual.momentum) json["momentum"] = *settings.momentum;
  if (settings.betas != usual.betas) json["betas"] = *settings.betas;
  if (settings.newton_schulz != usual.newton_schulz) json["newton_schulz"] = settings.newton_schulz;
  if (settings.selector != usual.selector) json["selector"] = name_of(settings.selector);
  if (settings.selector == Selector::dirichlet) json["concentration"] = settings.concentration;
  if (settings.entropy != usual.entropy) json["entropy"] = settings.entropy;
  if (settings.temperature != usual.temperature) json["temperature"] = settings.temperature;
  return json;
}

TrainSettings training_of(const Json& json) {
  TrainSettings settings;
  settings.param = value_named<Parametrization>(json.at("param").get<std::string>()).value();
  settings.optimizer = value_named<Optimizer>(json.at("optimizer").get<std::string>()).value();
  settings.arithmetic = value_named<Arithmetic>(json.at("arithmetic").get<std::string>()).value();
  settings.loss = value_named<Loss>(json.at("loss").get<std::string>()).value();
  settings.step = json.at("step");
  settings.steps = json.at("steps");
  settings.epsilon = json.at("epsilon").get<double>();
  settings.ridge = json.at("ridge");
  settings.init = json.at("init") == "random" ? Init::random : Init::zero;
  settings.joint = json.value("joint", false);
  if (settings.joint) settings.head_epsilon = json.at("epsilon_head").get<double>();
  settings.power = json.value("power", 2.0);
  settings.norm = Norm::parse(json.value("norm", "fro"));
  settings.normalize = json.value("normalize", false);
  if (json.contains("momentum")) settings.momentum = json.at("momentum").get<double>();
  if (json.contains("betas")) settings.betas = json.at("betas").get<std::array<double, 2>>();
  settings.newton_schulz = json.value("newton_schulz", Index{0});
  settings.selector = value_named<Selector>(json.value("selector", "soft")).value();
  settings.concentration = json.value("concentration", settings.concentration);
  settings.entropy = json.value("entropy", 0.0);
  settings.temperature = json.value("temperature", settings.temperature);
  return settings;
}

Json cell_settings(Json own, const TrainSettings& training) {
  own.update(json_of(training));
  return own;
}

Recipe recipe_of(const Json& settings) { return {.n = settings.at("n"), .T = settings.at("T"), .d = settings.at("d")}; }

std::vector<Index> curve_steps(Index steps) {
  std::vector<Index> list{0};
  for (Index decade = 1; decade <= steps; decade *= 10) {
    for (const double factor : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0}) {
      const auto at = static_cast<Index>(factor * static_cast<double>(decade));
      if (at > list.back() && at < steps) list.push_back(at);
    }
  }
  list.push_back(steps);
  return list;
}

std::vector<Index> path_steps(Index steps) {
  std::vector<Index> list;
  for (Index at = 0; at < steps; at += at < 60 ? 1 : 10) list.push_back(at);
  list.push_back(steps);
  return list;
}

TrainSettings recorded(const Json& settings, std::vector<Index> (*steps)(Index)) {
  TrainSettings training = training_of(settings);
  training.record.at = steps(training.steps);
  return training;
}

std::vector<StudyRow> make_rows(Index count, Threads& threads,
                                const std::function<StudyRow(std::size_t, Threads&)>& make) {
  std::vector<StudyRow> rows(static_cast<std::size_t>(count));
  for_each_alone(count, threads, [&](std::size_t k, Threads& alone) { rows[k] = make(k, alone); });
  return rows;
}

std::vector<StudyRow> train_and_judge(const Recipe& recipe, TrainSettings training, const Draws& draws,
                                      Threads& threads, const Judge& judge) {
  return train_and_judge(draw_tasks(recipe, draws, threads), std::move(training), draws, threads, judge);
}

std::vector<StudyRow> train_and_judge(const std::vector<AttentionTask>& tasks, TrainSettings training,
                                      const Draws& draws, Threads& threads, const Judge& judge) {
  training.seed = draws.seed;
  training.instance = draws.instance(0);
  const std::vector<TrainedRun> runs = train_many(tasks, training, threads);
  return make_rows(draws.count, threads,
                   [&](std::size_t k, Threads& alone) { return judge(tasks[k], runs[k], alone); });
}

std::vector<double> along(const TrainedRun& run, const std::function<double(const Record&)>& number) {
  std::vector<double> list;
  list.reserve(run.records.size());
  for (const Record& record : run.records) list.push_back(number(record));
  return list;
}

std::vector<double> steps_of(const TrainedRun& run) {
  return along(run, [](const Record& record) { return static_cast<double>(record.step); });
}

std::vector<double> correlations(const TrainedRun& run, const RowMatrix& direction) {
  return along(run, [&](const Record& record) { return correlation(record.W, direction); });
}

void add_prompt_path(const TrainedRun& run, Json& result) {
  result["step"] = json_list(steps_of(run));
  result["p1"] = json_list(along(run, [](const Record& record) { return record.W(0, 0); }));
  result["p2"] = json_list(along(run, [](const Record& record) { return record.W(1, 0); }));
}

Json first_two(const RowMatrix& W) { return Json::array({W(0, 0), W(1, 0)}); }

}  // namespace attsvm::internal
