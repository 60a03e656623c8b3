#include "study/training.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attsvm/margin.h"
#include "study/instances.h"
#include "train/settings.h"

namespace attsvm::internal {

Json json_of(const TrainSettings& settings) {
  Json json{{"param", name_of(settings.param)},
            {"optimizer", name_of(settings.optimizer)},
            {"arithmetic", name_of(settings.arithmetic)},
            {"loss", name_of(settings.loss)},
            {"step", settings.step},
            {"steps", settings.steps},
            {"epsilon", settings.epsilon},
            {"ridge", settings.ridge},
            {"init", settings.init == Init::random ? "random" : "zero"}};
  if (settings.joint)
    json.update({{"joint", true}, {"epsilon_head", settings.head_epsilon.value_or(settings.epsilon)}});
  if (settings.optimizer == Optimizer::mirror)
    json.update({{"power", settings.power}, {"normalize", settings.normalize}});
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
  settings.epsilon = json.at("epsilon");
  settings.ridge = json.at("ridge");
  settings.init = json.at("init") == "random" ? Init::random : Init::zero;
  settings.joint = json.value("joint", false);
  if (settings.joint) settings.head_epsilon = json.at("epsilon_head").get<double>();
  settings.power = json.value("power", 2.0);
  settings.normalize = json.value("normalize", false);
  return settings;
}

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

void for_each_alone(std::size_t count, Threads& threads, const std::function<void(std::size_t, Threads&)>& work) {
  threads.for_each(static_cast<std::int64_t>(count), [&](std::int64_t k) {
    Threads alone(1);
    work(static_cast<std::size_t>(k), alone);
  });
}

std::vector<StudyRow> train_and_judge(const std::vector<AttentionTask>& tasks, TrainSettings training,
                                      std::uint64_t seed, std::uint32_t first, Threads& threads, const Judge& judge) {
  training.seed = seed;
  training.instance = first;
  const std::vector<TrainedRun> runs = train_many(tasks, training, threads);
  std::vector<StudyRow> rows(tasks.size());
  for_each_alone(rows.size(), threads,
                 [&](std::size_t k, Threads& alone) { rows[k] = judge(tasks[k], runs[k], alone); });
  return rows;
}

MarginSolution solve_verified(const MarginProblem& problem, const Norm& norm, MarginSolver& solver, bool& verified) {
  const SolveSettings settings{.norm = norm};
  MarginSolution solution = solver.solve(problem, settings);
  verified = verified && is_settled(solution.status) &&
             verify(problem.task(), stored(problem, solution, settings.tolerance)).valid;
  return solution;
}

Json json_list(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double x : numbers) list.push_back(std::isfinite(x) ? Json(x) : Json());
  return list;
}

std::vector<double> numbers_list(const Json& list) {
  std::vector<double> numbers;
  for (const Json& x : list)
    numbers.push_back(x.is_number() ? x.get<double>() : std::numeric_limits<double>::quiet_NaN());
  return numbers;
}

std::vector<double> coordinate(const TrainedRun& run, Index row) {
  std::vector<double> list;
  for (const Record& record : run.records) list.push_back(record.W(row, 0));
  return list;
}

std::vector<double> steps_of(const TrainedRun& run) {
  std::vector<double> list;
  for (const Record& record : run.records) list.push_back(static_cast<double>(record.step));
  return list;
}

MeanCurve mean_curve(const std::vector<const Json*>& results, const std::string& name) {
  std::vector<std::vector<double>> lists;
  for (const Json* result : results) lists.push_back(numbers_list(result->at(name)));
  MeanCurve curve;
  for (std::size_t at = 0; !lists.empty() && at < lists.front().size(); ++at) {
    std::vector<double> here;
    for (const auto& list : lists) here.push_back(list.at(at));
    const Sample sample = sample_of(here);
    const double spread = std::isfinite(sample.sd) ? sample.sd : 0;
    curve.mean.push_back(sample.mean);
    curve.low.push_back(sample.mean - spread);
    curve.high.push_back(sample.mean + spread);
  }
  return curve;
}

Curve ray(const std::string& label, int style, double x, double y, double length) {
  const double scale = length / std::hypot(x, y);
  return {.label = label, .style = style, .x = {0, scale * x}, .y = {0, scale * y}};
}

Panel plane(const std::string& title, double reach) {
  return {.title = title,
          .x_label = "first coordinate",
          .y_label = "second coordinate",
          .x_range = {{-reach, reach}},
          .y_range = {{-reach, reach}},
          .square = true,
          .key = kOutside};
}

std::string arithmetic_words(const std::string& name) { return name == "plain" ? "plain arithmetic" : "exact"; }

}  // namespace attsvm::internal
