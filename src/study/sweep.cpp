#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attsvm/error.h"
#include "attsvm/files.h"
#include "attsvm/theory.h"
#include "attsvm/verify.h"
#include "io/file.h"
#include "io/json.h"
#include "study/sweep_figure.h"
#include "study/training.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

Json recipe_json(const Recipe& recipe) {
  return {{"n", recipe.n},
          {"T", recipe.T},
          {"d", recipe.d},
          {"dz", recipe.dz},
          {"shortest", recipe.shortest},
          {"attention", static_cast<int>(recipe.pattern)},
          {"head", name_of(recipe.head)},
          {"hidden", recipe.hidden},
          {"lambda", recipe.lambda},
          {"rank", recipe.rank}};
}

/// The selection whose SVM is solved if nothing is trained.
Selection given_selection(const AttentionTask& task) {
  return task.select() ? *task.select() : optimal_tokens(task).selection;
}

class UserSweep final : public Study {
 public:
  explicit UserSweep(SweepPlan plan) : plan_(std::move(plan)), cells_(make_cells()) {}

  StudyFacts facts() const override {
    return {.name = plan_.name,
            .title = plan_.title,
            .setting = fmt::format("{}, {} settings; {}.",
                                   plan_.kind.empty() ? "Tasks from files" : "Tasks of kind " + plan_.kind,
                                   plan_.points.size(),
                                   plan_.points.front().training ? "the tokens that training selects"
                                                                 : "the optimal tokens, or those drawn with the task"),
            .paper = "A user-defined sweep.",
            .published = false};
  }

  std::vector<StudyCell> cells() const override { return cells_; }

  Index batch() const override {
    constexpr Index kSteps = 64'000;  // per batch: about a second
    Index steps = 1;
    for (const SweepPoint& point : plan_.points) steps = std::max(steps, point.training ? point.training->steps : 1);
    return std::clamp<Index>(kSteps / steps, 1, 32);
  }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& asked, Threads& threads) const override {
    const SweepPoint& point = point_of(cell);
    Draws draws = asked;
    draws.seed = point.seed.value_or(asked.seed);
    const auto with_run = [&](const AttentionTask& task, const TrainedRun& run, Threads& alone) {
      return measure(task, &run, alone);
    };
    const std::vector<AttentionTask> tasks = point.task
                                                 ? std::vector(static_cast<std::size_t>(draws.count), *point.task)
                                                 : draw_tasks(point.recipe, draws, threads);
    if (point.training) return train_and_judge(tasks, *point.training, draws, threads, with_run);
    return make_rows(draws.count, threads,
                     [&](std::size_t k, Threads& alone) { return measure(tasks[k], nullptr, alone); });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    for (const SweepSetting& setting : plan_.settings) summary.table.columns.push_back({setting.name, "setting"});
    summary.table.columns.push_back({"runs", "runs that count"});
    summary.table.columns.push_back({"draws", "draws, rejected ones included"});
    for (const std::string& name : plan_.measures) {
      summary.table.columns.push_back({name, sweep_measure(name).meaning + ", mean over runs"});
      summary.table.columns.push_back({name + "_sd", "its standard deviation over runs"});
      summary.table.columns.push_back({name + "_count", "runs that have it"});
    }
    for (std::size_t k = 0; k < cells.size(); ++k) {
      Json row = Json::array();
      for (const Json& value : plan_.points[k].values) row.push_back(value);
      row.push_back(cells[k].accepted());
      row.push_back(cells[k].rows.size());
      for (const std::string& name : plan_.measures) {
        const Sample sample = sample_of(cells[k].results(), name);
        row.push_back(sample.mean);
        row.push_back(sample.sd);
        row.push_back(sample.count);
      }
      summary.table.rows.push_back(std::move(row));
    }
    summary.overview = overview(summary.table);
    summary.figure = sweep_figure(plan_, summary.table);
    return summary;
  }

 private:
  std::vector<StudyCell> make_cells() const {
    std::vector<StudyCell> cells;
    for (const SweepPoint& point : plan_.points) {
      std::string name;
      Json labels = Json::object();
      for (std::size_t k = 0; k < plan_.settings.size(); ++k) {
        const SweepSetting& setting = plan_.settings[k];
        labels[setting.name] = point.values[k];
        if (setting.varied)
          name += fmt::format("{}{}={}", name.empty() ? "" : " ", setting.name, text_of(point.values[k]));
      }
      Json settings = Json::object();
      if (point.task) {
        settings = {{"file", point.values.front()}, {"fingerprint", fingerprint_of(*point.task)}};
      } else {
        settings = {{"kind", plan_.kind}, {"task", recipe_json(point.recipe)}};
      }
      settings.update({{"measure", plan_.measures}, {"require_feasible", plan_.require_feasible}});
      double cost = 50;
      if (point.training) {
        settings["train"] = json_of(*point.training);
        cost += static_cast<double>(point.training->steps) * 4;
      }
      if (point.seed) settings["seed"] = *point.seed;
      // The same task gives the same run again, unless it starts elsewhere.
      const bool once = point.task && !(point.training && point.training->init == Init::random);
      cells.push_back({.name = name.empty() ? "all" : name,
                       .settings = std::move(settings),
                       .labels = std::move(labels),
                       .runs = plan_.runs,
                       .draws_per_run = 20,
                       .most_runs = once ? 1 : 0,
                       .cost = cost});
    }
    return cells;
  }

  const SweepPoint& point_of(const StudyCell& cell) const {
    for (std::size_t k = 0; k < cells_.size(); ++k) {
      if (cells_[k].name == cell.name) return plan_.points[k];
    }
    throw std::logic_error("a cell of another sweep");
  }

  bool asks(const std::string& name) const {
    return std::find(plan_.measures.begin(), plan_.measures.end(), name) != plan_.measures.end();
  }

  StudyRow measure(const AttentionTask& task, const TrainedRun* run, Threads& alone) const {
    Json all;
    Selection selection = given_selection(task);
    if (run != nullptr) {
      const AttentionMap map = attention_map(task, run->W, alone);
      const bool sets = task.head().kind != HeadKind::linear;
      selection =
          sets ? kept_tokens(task, map.log_weights, CheckSettings{}.threshold) : Selection::single(map.selected);
      double weight = 0;
      for (Index i = 0; i < task.queries(); ++i) weight += map.weight(i) / static_cast<double>(task.queries());
      all = {{"loss", run->loss}, {"norm", run->norm}, {"attention", weight}};
    }
    VerifyingSolver solver(alone);
    const MarginProblem problem = MarginProblem::attention(task, selection);
    const MarginSolution fro = solver.solve(problem);
    if (!solver.verified()) return StudyRow::rejected(kNotVerified);
    const bool feasible = fro.status == MarginStatus::optimal;
    if (!feasible && plan_.require_feasible) return StudyRow::rejected("infeasible");
    all["feasible"] = feasible ? 1 : 0;
    if (feasible) {
      all["objective_fro"] = fro.objective;
      all["rank_fro"] = numerical_rank(fro.W);
      all["support_share"] = static_cast<double>(fro.support) / static_cast<double>(std::max<Index>(1, problem.rows()));
      if (run != nullptr) all["correlation_fro"] = correlation(run->W, fro.W);
    }
    if (feasible && (asks("objective_nuc") || asks("rank_nuc") || asks("correlation_nuc"))) {
      const MarginSolution nuc = solver.solve(problem, Norm::nuclear());
      all["objective_nuc"] = nuc.objective;
      all["rank_nuc"] = numerical_rank(nuc.W);
      if (run != nullptr) all["correlation_nuc"] = correlation(run->W, nuc.W);
    }
    if (run != nullptr && (asks("global") || asks("local"))) {
      const Verdict verdict = check_selection(task, selection, {}, alone).verdict;
      all["global"] = verdict == Verdict::global ? 1 : 0;
      all["local"] = verdict == Verdict::local ? 1 : 0;
    }
    if (!solver.verified()) return StudyRow::rejected(kNotVerified);
    StudyRow row{"", Json::object()};
    for (const std::string& name : plan_.measures) {
      const auto found = all.find(name);
      const bool number = found != all.end() && std::isfinite(found->get<double>());
      row.result[name] = number ? *found : Json();
    }
    return row;
  }

  /// The table as it is printed: what varies, and "mean ± standard deviation", or the
  /// Wilson interval of a share.
  std::vector<std::vector<std::string>> overview(const Table& table) const {
    std::vector<std::vector<std::string>> lines(table.rows.size() + 1);
    for (std::size_t s = 0; s < plan_.settings.size(); ++s) {
      if (!plan_.settings[s].varied) continue;
      lines[0].push_back(plan_.settings[s].name);
      for (std::size_t k = 0; k < table.rows.size(); ++k) lines[k + 1].push_back(text_of(table.rows[k][s]));
    }
    lines[0].emplace_back("runs");
    lines[0].insert(lines[0].end(), plan_.measures.begin(), plan_.measures.end());
    for (std::size_t k = 0; k < table.rows.size(); ++k) {
      const Json& row = table.rows[k];
      lines[k + 1].push_back(text_of(row[plan_.settings.size()]));
      for (std::size_t m = 0; m < plan_.measures.size(); ++m) {
        const std::size_t column = measure_column(plan_, m);
        const double mean = row[column], sd = row[column + 1];
        const Interval interval = wilson(mean, row[column + 2]);
        lines[k + 1].push_back(std::isnan(mean) ? "-"
                               : sweep_measure(plan_.measures[m]).share
                                   ? fmt::format("{:.3g} ({:.2f} to {:.2f})", mean, interval.low, interval.high)
                               : std::isnan(sd) ? fmt::format("{:.4g}", mean)
                                                : fmt::format("{:.4g} ± {:.2g}", mean, sd));
      }
    }
    return lines;
  }

  SweepPlan plan_;
  std::vector<StudyCell> cells_;  // one per point, in their order
};

}  // namespace

SweepFile load_sweep(const std::string& path) {
  return with_place(path, [&] {
    const auto file = InputFile::open(path);
    const Bytes bytes = file->bytes();
    SweepPlan plan = parse_sweep(parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    const std::uint64_t seed = plan.seed;
    return SweepFile{std::make_unique<UserSweep>(std::move(plan)), seed};
  });
}

}  // namespace attsvm::internal
