#include "study/variants.h"

namespace attsvm::internal {

Json cell_settings(Json own, const std::vector<Variant>& variants) {
  own["variants"] = Json::array();
  for (const Variant& one : variants) {
    Json json{{"name", one.name}};
    json.update(json_of(one.training));
    own["variants"].push_back(std::move(json));
  }
  return own;
}

std::vector<Variant> variants_of(const Json& settings) {
  std::vector<Variant> variants;
  for (const Json& one : settings.at("variants")) variants.push_back({one.at("name"), training_of(one)});
  return variants;
}

TaskSvms::Selected& TaskSvms::selected_by(const RowMatrix& W) {
  const AttentionMap map = attention_map(task_, W, threads_);
  const auto found = known_.find(map.selected);
  if (found != known_.end()) return found->second;
  return known_.emplace(map.selected, Selected{MarginProblem::attention(task_, Selection::single(map.selected))})
      .first->second;
}

const MarginSolution& TaskSvms::solve(Selected& selected, const Norm& norm) {
  const auto [at, fresh] = selected.solutions.try_emplace(norm.name());
  if (fresh) {
    at->second = solver_.solve(selected.problem, {.norm = norm});
    selected.verified = selected.verified && is_verified(selected.problem, at->second);
  }
  return at->second;
}

std::vector<StudyRow> run_variants(const Json& settings, const Draws& draws, Threads& threads,
                                   std::vector<Index> (*steps)(Index), const Measure& measure) {
  const std::vector<AttentionTask> tasks = draw_tasks(recipe_of(settings), draws, threads);
  const std::vector<Variant> variants = variants_of(settings);
  std::vector<std::vector<TrainedRun>> runs;
  for (const Variant& one : variants) {
    TrainSettings training = one.training;
    training.seed = draws.seed;
    training.instance = draws.instance(0);
    if (steps != nullptr) training.record.at = steps(training.steps);
    runs.push_back(train_many(tasks, training, threads));
  }
  return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
    TaskSvms svms(tasks[k], alone);
    StudyRow row{"", Json::object()};
    for (std::size_t v = 0; v < variants.size(); ++v) {
      if (runs[v][k].stop == TrainStop::overflow) {
        row.result[variants[v].name] = kOverflowed;
        continue;
      }
      TaskSvms::Selected& selected = svms.selected_by(runs[v][k].W);
      const MarginStatus status = svms.solve(selected, Norm::frobenius()).status;
      Json said =
          status == MarginStatus::optimal ? measure(variants[v], runs[v][k], svms, selected) : Json(kNotSeparable);
      row.result[variants[v].name] = selected.verified ? std::move(said) : Json(kNotVerified);
    }
    return row;
  });
}

Measured measured(const CellRows& rows, const std::string& variant) {
  Measured all;
  for (const Json* result : rows.results()) {
    const Json& one = result->at(variant);
    if (one.is_object()) {
      all.runs.push_back(&one);
    } else {
      ++(one == kOverflowed ? all.overflowed : one == kNotVerified ? all.not_verified : all.not_separable);
    }
  }
  return all;
}

Sample sample_at(const std::vector<const Json*>& runs, const std::string& name, std::size_t at) {
  std::vector<double> numbers;
  numbers.reserve(runs.size());
  for (const Json* run : runs) numbers.push_back(numbers_list(run->at(name)).at(at));
  return sample_of(numbers);
}

}  // namespace attsvm::internal
