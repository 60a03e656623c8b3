#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "study/panels.h"
#include "study/variants.h"
#include "train/optimizers.h"

namespace attsvm::internal {
namespace {

constexpr Index kRateSteps = 100'000, kRateTasks = 16, kSlowTasks = 4;

struct RateRow {
  const char *name, *optimizer;
  double step, momentum = 0;
  bool decomposes = false;  ///< a step takes a singular value decomposition, a hundred times the work
  const char* published;    ///< in words
};
constexpr const char* kNoRate = "no rate for attention is known to us";
constexpr const char* kBounds = "published bounds are poly-logarithmic or t^-1/2";
constexpr std::array kRateRows{
    RateRow{"ngd", "ngd", 0.1, 0, false, kBounds},
    RateRow{"gd", "gd", 1, 0, false, "published, 1/log t"},
    RateRow{"polyak", "polyak", 1, 0, false,
            "no rate known to us; at a local optimum the loss stays above its least value, and steps explode"},
    RateRow{"ngd, momentum .9", "ngd", 0.1, 0.9, false, kNoRate},
    RateRow{"mirror:1.5", "mirror:1.5", 0.1, 0, false, kBounds},
    RateRow{"mirror:3", "mirror:3", 0.1, 0, false, kBounds},
    RateRow{"steepest:max", "steepest:max", 0.02, 0, false, kNoRate},
    RateRow{"steepest:l1", "steepest:l1", 0.3, 0, false, kNoRate},
    RateRow{"steepest:spec", "steepest:spec", 0.05, 0, true, kNoRate},
    RateRow{"steepest:nuc", "steepest:nuc", 0.15, 0, true, kNoRate},
};

Variant rate_variant(const RateRow& row) {
  TrainSettings training{.step = row.step, .steps = kRateSteps, .init = Init::zero};
  set_optimizer(row.optimizer, training);
  if (row.momentum > 0) training.momentum = row.momentum;
  return {row.name, training};
}

/// Slope of log y against log x over the last decade of x; NaN where fewer than three y are above rounding.
double last_slope(const std::vector<double>& x, const std::vector<double>& y) {
  double count = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (x[k] < 0.1 * x.back() || !(y[k] > 1e-14)) continue;
    const double log_x = std::log(x[k]), log_y = std::log(y[k]);
    count += 1;
    sum_x += log_x;
    sum_y += log_y;
    sum_xx += log_x * log_x;
    sum_xy += log_x * log_y;
  }
  return count < 3 ? NAN : (count * sum_xy - sum_x * sum_y) / (count * sum_xx - sum_x * sum_x);
}

std::vector<double> less_than_one(std::vector<double> list) {
  for (double& x : list) x = 1 - x;
  return list;
}

Json measure_rate(const Variant& one, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected& selected) {
  const MarginSolution& svm = svms.solve(selected, implied_norm(one.training)->norm);
  const std::vector<double> steps = steps_of(run), share = along(run, [&](const Record&record) {
                                                     return margin_share(selected.problem, svm, record.W);
                                                   });
  Json result{{"unique", svm.unique.value_or(false)},
              {"share", json_list(share)},
              {"share_slope", last_slope(steps, less_than_one(share))}};
  if (!svm.unique.value_or(false)) return result;
  const std::vector<double> correlation = correlations(run, svm.W);
  result["correlation"] = json_list(correlation);
  result["correlation_slope"] = last_slope(steps, less_than_one(correlation));
  return result;
}

std::vector<const Json*> unique_runs(const std::vector<const Json*>& runs) {
  std::vector<const Json*> unique;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(unique),
               [](const Json* run) { return run->at("unique").get<bool>(); });
  return unique;
}

/// "t^-0.98 ± 0.01"; "-" without runs to fit.
std::string slope_words(const Sample& slope) {
  if (slope.count == 0) return "-";
  return slope.count == 1 ? fmt::format("t^{:.2f}", slope.mean)
                          : fmt::format("t^{:.2f} ± {:.2f}", slope.mean, slope.error());
}

/// Whether 1 − ρ and 1 − correlation fall, and how fast, of one optimizer in words.
std::string rate_words(const Measured& all, const std::vector<const Json*>& unique, std::size_t last) {
  const std::string overflowed = all.overflowed == 0 ? ""
                                                     : fmt::format(" {} of {} runs overflowed.", all.overflowed,
                                                                   all.overflowed + std::ssize(all.runs));
  if (all.runs.empty()) return "No run to judge by." + overflowed;
  const Sample share = sample_of(all.runs, "share_slope"), direction = sample_of(unique, "correlation_slope");
  const std::string rho =
      fmt::format("ρ is {} after {} steps", words_of(sample_at(all.runs, "share", last)), kRateSteps);
  const std::string pace =
      share.count == 0 ? "1 − ρ is too small to fit" : fmt::format("1 − ρ goes like {}", slope_words(share));
  const std::string turn =
      unique.empty()         ? "no optimum is certified to be the only one, so that no direction is compared"
      : direction.count == 0 ? "1 − correlation is too small to fit"
                             : fmt::format("1 − correlation like {} ({} of {} optima are certified to be the only one)",
                                           slope_words(direction), unique.size(), all.runs.size());
  return fmt::format("{}; {}, {}.{}", rho, pace, turn, overflowed);
}

class Rates final : public Study {
 public:
  StudyFacts facts() const override {
    return {
        .name = "rates",
        .title = "How fast do optimizers reach their SVM?",
        .setting =
            "Random tasks (6,8,10), linear head, logistic loss, W from zero, 100,000 steps, exact directions; 16 "
            "tasks, 4 where steps need singular values. Exponents are slopes of log(1 − ρ) and log(1 − "
            "correlation) against log t from 10,000 to 100,000 steps, means over runs ± standard error. "
            "Correlation only where the optimum is certified to be the only one.",
        .paper =
            "Published, in words: gradient descent 1/log t; normalized gradient descent and mirror descent bounds of "
            "t^-1/2 or poly-logarithmic ones. They are bounds: faster runs do not contradict them.",
        .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const RateRow& row : kRateRows) {
      cells.push_back({.name = row.name,
                       .settings = cell_settings({{"n", 6}, {"T", 8}, {"d", 10}}, {rate_variant(row)}),
                       .runs = row.decomposes ? kSlowTasks : kRateTasks,
                       .cost = kRateSteps * (row.decomposes ? 50.0 : 3.0)});
    }
    return cells;
  }

  Index batch() const override { return 8; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    return run_variants(cell.settings, draws, threads, curve_steps, measure_rate);
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"optimizer", "how W is trained"},
                             {"norm", "in which it is expected to maximise the margin"},
                             kStepColumn,
                             {"runs", "whose mean this is"},
                             {"unique_runs", "of these, runs whose optimum is certified to be the only one"},
                             {"share", "mean ρ in that norm"},
                             {"correlation", "mean correlation with W^mm, unique runs"},
                             {"share_slope", "mean slope of log(1 − ρ) over the last decade"},
                             {"share_slope_error", "its standard error"},
                             {"correlation_slope", "the same of log(1 − correlation), unique runs"},
                             {"correlation_slope_error", "its standard error"}};
    summary.figure = {.title = "How fast do optimizers reach their SVM?",
                      .caption =
                          "Means over runs, each in the norm in which the optimizer is expected to maximise the "
                          "margin; (b, d) only runs whose optimum is certified to be the only one. The curves of max "
                          "and l1 in (d) level off where a W of almost the same norm lies in another direction.",
                      .columns = 2};
    for (const char* kind : {"gradient and mirror descent", "steepest descent"}) {
      Panel share = over_steps(fmt::format("1 − ρ, {}", kind), "1 − ρ", kRateSteps),
            correlation = distance_over_steps(fmt::format("1 − correlation with W^{{mm}}, {}", kind), kRateSteps);
      share.log_y = true;
      share.y_range = {{1e-6, 1}};
      correlation.y_range = {{1e-10, 1}};
      summary.figure.panels.push_back(std::move(share));
      summary.figure.panels.push_back(std::move(correlation));
    }
    summary.overview = {{"optimizer", "norm", "runs", "ρ at the end", "1 − ρ", "1 − correlation"}};
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const bool steepest = cells[k].cell.name.starts_with("steepest");
      Panel* panels = &summary.figure.panels[steepest ? 2 : 0];
      add(cells[k], panels[0], panels[1], summary);
      summary.findings.back().paper = fmt::format("{}: {}.", kRateRows.at(k).name, kRateRows.at(k).published);
    }
    return summary;
  }

 private:
  static void add(const CellRows& rows, Panel& shares, Panel& correlations, Summary& summary) {
    const Variant one = variants_of(rows.cell.settings).at(0);
    const Measured all = measured(rows, one.name);
    const std::vector<const Json*> runs = all.runs, unique = unique_runs(runs);
    const std::vector<Index> steps = curve_steps(one.training.steps);
    const Sample share_slope = sample_of(runs, "share_slope"), slope = sample_of(unique, "correlation_slope");
    const MeanCurve share = mean_curve(runs, "share"), correlation = mean_curve(unique, "correlation");
    const auto style = static_cast<int>(shares.curves.size());
    const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
    for (std::size_t k = 1; k < steps.size() && !runs.empty(); ++k) {
      summary.table.rows.push_back(Json::array(
          {one.name, implied_norm(one.training)->norm.name(), steps[k], runs.size(), unique.size(),
           number(share.mean[k]), unique.empty() ? Json() : number(correlation.mean[k]), number(share_slope.mean),
           number(share_slope.error()), number(slope.mean), number(slope.error())}));
    }
    const auto distance = [&](const MeanCurve& mean, Panel& panel) {
      Curve curve = mean_over_steps(mean, steps, one.name, style);
      for (double& y : curve.y) y = 1 - y;
      panel.curves.push_back(std::move(curve));
    };
    distance(share, shares);
    if (!unique.empty()) distance(correlation, correlations);
    const Sample final_share = sample_at(runs, "share", steps.size() - 1);
    summary.overview.push_back({one.name, implied_norm(one.training)->norm.name(), fmt::format("{}", runs.size()),
                                runs.empty() ? "-" : fmt::format("{:.4f}", final_share.mean), slope_words(share_slope),
                                slope_words(slope)});
    summary.findings.push_back({.paper = "", .ours = rate_words(all, unique, steps.size() - 1), .why = ""});
  }
};

}  // namespace

std::unique_ptr<Study> rates_study() { return std::make_unique<Rates>(); }

}  // namespace attsvm::internal
