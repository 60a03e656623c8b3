#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

/// The two published data sets: tokens (2,T,2), queries (2,2), head (2); all labels are +1.
struct DataSet {
  Index T;
  std::vector<double> tokens, queries, head;
};

const std::array<DataSet, 2>& data_sets() {
  static const std::array<DataSet, 2> sets{
      DataSet{3,
              {-0.9814968109130859, 0.18639519810676575, -1.135571837425232, -0.0498390719294548, -1.4568305015563965,
               0.11450517922639847, 0.6917173862457275, -0.16891583800315857, 0.732312798500061, -0.017475053668022156,
               0.9413471221923828, -0.2896907925605774},
              {0.8450113534927368, 0.534748375415802, -0.6362639665603638, -0.771471381187439},
              {0.9273199439048767, 0.37426966428756714}},
      DataSet{5,
              {1.0,
               0.5,
               -0.1897246241569519,
               -0.7983540296554565,
               -0.7976964116096497,
               0.3056498169898987,
               -0.6198047995567322,
               -0.01682163029909134,
               -1.1724226474761963,
               0.24682678282260895,
               1.0,
               -0.5,
               -0.7574430108070374,
               0.10261718928813934,
               -0.830785870552063,
               0.67637699842453,
               -0.8131822943687439,
               0.006708239670842886,
               -0.613163411617279,
               -0.05462175980210304},
              {-0.5391289591789246, -0.8422232270240784, 0.9525519013404846, 0.30437642335891724},
              {0.9771237969398499, 0.2126714289188385}}};
  return sets;
}

/// The published start of K (Gaussian, deviation 0.1); Q starts at zero.
const RowMatrix& published_K0() {
  static const RowMatrix K0 =
      (RowMatrix(2, 2) << 0.10160478634613535, 0.026382072639122373, 0.037737220529490516, -0.1138629692453524)
          .finished();
  return K0;
}

AttentionTask make_task(Index T) {
  for (const DataSet& set : data_sets()) {
    if (set.T != T) continue;
    return AttentionTask({.tokens = Array::own(set.tokens, {2, T, 2}),
                          .queries = Array::own(set.queries, {2, 2}),
                          .head = Array::own(set.head, {2})});
  }
  throw std::logic_error("no such data set");
}

class GdPaths final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "gd-paths",
            .title = "Paths of W z in the plane",
            .setting =
                "The two published data sets, n = 2, d = 2, T = 3 and T = 5; W from zero, and (K,Q) from a small K and "
                "Q = 0; 2,000 normalized gradient steps of 0.1. Plain arithmetic adds 2^-52 to norms and as ridge on "
                "(K,Q), as published.",
            .paper =
                "Transformers as Support Vector Machines (arXiv 2308.16898), the figure of W z in the plane: W z₁ and "
                "W z₂ leave the "
                "origin and turn into the directions that the Frobenius SVM predicts for W runs and, with vanishing "
                "regularization, the nuclear SVM for (K,Q) runs."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const DataSet& set : data_sets()) {
      for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
        for (const Arithmetic arithmetic : kArithmetics) {
          const bool plain = arithmetic == Arithmetic::plain;
          cells.push_back({.name = fmt::format("T={} {} {}", set.T, name_of(param), name_of(arithmetic)),
                           .settings = cell_settings({{"data", "published"}, {"n", 2}, {"T", set.T}, {"d", 2}},
                                                     {.param = param,
                                                      .epsilon = plain ? 0x1p-52 : 0,
                                                      .ridge = plain && param == Parametrization::KQ ? 0x1p-52 : 0,
                                                      .arithmetic = arithmetic,
                                                      .init = Init::zero}),
                           .most_runs = 1,
                           .cost = 2000 * 1.0});
        }
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws&, Threads& threads) const override {
    const AttentionTask task = make_task(cell.settings.at("T"));
    const TrainSettings training = recorded(cell.settings, path_steps);
    Start start;
    if (training.param == Parametrization::KQ) start = {.K = published_K0(), .Q = RowMatrix::Zero(2, 2)};
    return {judge(task, train(task, training, threads, start), threads)};
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"T", "tokens per sequence"},
                             {"param", "what is trained"},
                             kArithmeticColumn,
                             kStepColumn,
                             {"z1_x", "first coordinate of W z_1"},
                             {"z1_y", "second"},
                             {"z2_x", "first coordinate of W z_2"},
                             {"z2_y", "second"},
                             {"correlation_fro", "of W with the Frobenius SVM"},
                             {"correlation_nuc", "of W with the nuclear SVM"}};
    summary.figure = {
        .title = "Paths of W z in the plane",
        .caption =
            "Lines end after 2,000 steps or at the edge of the window. Rays: directions that the SVMs of the "
            "selected tokens predict, the Frobenius one for W runs and the nuclear one for (K,Q) runs. Exact and plain "
            "runs lie on each other until gradients underflow. Tokens are enlarged: the longest reaches half of the "
            "window.",
        .columns = 2};
    for (const CellRows& rows : cells) {
      if (rows.results().empty()) continue;
      add_steps(rows.cell.settings, *rows.results().front(), summary.table);
      draw(rows, summary.figure);
    }
    explain(cells, summary.findings);
    return summary;
  }

 private:
  static StudyRow judge(const AttentionTask& task, const TrainedRun& run, Threads& threads) {
    const AttentionMap map = attention_map(task, run.W, threads);
    VerifyingSolver solver(threads);
    const MarginProblem problem = MarginProblem::attention(task, Selection::single(map.selected));
    const MarginSolution fro = solver.solve(problem);
    if (fro.status != MarginStatus::optimal) return StudyRow::rejected("selected tokens not separable");
    const MarginSolution nuc = solver.solve(problem, Norm::nuclear());
    if (!solver.verified()) return StudyRow::rejected(kNotVerified);
    Json result{{"selected", map.selected}, {"step", json_list(steps_of(run))}};
    for (Index i = 0; i < 2; ++i) {
      for (Index c = 0; c < 2; ++c) {
        const std::string name = fmt::format("z{}_{}", i + 1, c == 0 ? "x" : "y");
        const auto at = [&](const RowMatrix& W) { return (W * task.query(i))(c); };
        result[name] = json_list(along(run, [&](const Record& record) { return at(record.W); }));
        result["fro_" + name] = at(fro.W);
        result["nuc_" + name] = at(nuc.W);
      }
    }
    result["correlation_fro"] = json_list(correlations(run, fro.W));
    result["correlation_nuc"] = json_list(correlations(run, nuc.W));
    return {"", std::move(result)};
  }

  /// Plain and exact runs of one setting share a panel.
  static void draw(const CellRows& rows, Figure& figure) {
    const Json &s = rows.cell.settings, &result = *rows.results().front();
    const bool is_W = s.at("param") == "W", exact = s.at("arithmetic") == "exact";
    const double reach = s.at("T") == 3 ? 60 : 8;
    const std::string title = fmt::format("T = {}, {} trained", s.at("T").get<Index>(), is_W ? "W" : "(K,Q)");
    if (figure.panels.empty() || figure.panels.back().title != title) {
      figure.panels.push_back(plane(title, {-reach, reach}, {-reach, reach}));
    }
    Panel& panel = figure.panels.back();
    for (int i = 1; i <= 2; ++i) {
      const std::string x = fmt::format("z{}_x", i), y = fmt::format("z{}_y", i), svm = is_W ? "fro_" : "nuc_";
      if (exact)
        panel.curves.push_back(
            ray(fmt::format("SVM, z_{}", i), 5 + i, Json::array({result.at(svm + x), result.at(svm + y)}), 2 * reach));
      panel.curves.push_back(curve_of(result, x, y, fmt::format("W z_{}, {}", i, arithmetic_words(s.at("arithmetic"))),
                                      (i - 1) + (exact ? 0 : 2)));
      panel.curves.back().look = {.colour = i - 1, .dash = exact ? 0 : 1};
      if (exact) add_tokens(panel, s.at("T"), i - 1, result.at("selected").at(static_cast<std::size_t>(i - 1)), reach);
    }
  }

  /// The tokens of input i, in the colour of its path, and the selected one. Only their directions matter beside W z,
  /// so they are enlarged until they can be seen in the window.
  static void add_tokens(Panel& panel, Index T, Index i, Index selected, double reach) {
    const AttentionTask task = make_task(T);
    double longest = 0;
    for (Index k = 0; k < 2; ++k) longest = std::max(longest, task.values(k).rowwise().norm().maxCoeff());
    const int colour = static_cast<int>(i);
    Curve others{.label = fmt::format("tokens of input {}", i + 1),
                 .mark = Mark::points,
                 .style = colour,
                 .look = Look{.colour = colour, .dash = 1}},
        chosen{.label = fmt::format("selected token of input {}", i + 1), .mark = Mark::points, .style = colour};
    for (Index t = 0; t < T; ++t) {
      Curve& curve = t == selected ? chosen : others;
      curve.x.push_back(task.values(i)(t, 0) * reach / (2 * longest));
      curve.y.push_back(task.values(i)(t, 1) * reach / (2 * longest));
    }
    panel.curves.push_back(std::move(others));
    panel.curves.push_back(std::move(chosen));
  }

  static void explain(const std::vector<CellRows>& cells, std::vector<Finding>& findings) {
    std::vector<std::string> ours;
    for (const CellRows& rows : cells) {
      if (rows.results().empty()) continue;
      const Json &s = rows.cell.settings, &result = *rows.results().front();
      ours.push_back(fmt::format("T = {}, {}, {}: {:.6f} Frobenius, {:.6f} nuclear", s.at("T").get<Index>(),
                                 s.at("param").get<std::string>(), arithmetic_words(s.at("arithmetic")),
                                 result.at("correlation_fro").back().get<double>(),
                                 result.at("correlation_nuc").back().get<double>()));
    }
    findings.push_back(
        {.paper = "W runs turn to W^mm z, (K,Q) runs (with a tiny ridge) to the nuclear solution's direction.",
         .ours = fmt::format("Correlation after 2,000 steps: {}.", fmt::join(ours, "; ")),
         .why =
             "Where gradients underflow, plain arithmetic moves in a random direction; exact directions stay right."});
  }
};

}  // namespace

std::unique_ptr<Study> gd_paths_study() { return std::make_unique<GdPaths>(); }

}  // namespace attsvm::internal
