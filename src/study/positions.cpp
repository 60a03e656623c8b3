#include "attsvm/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "study/panels.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

constexpr Index kSequences = 4, kLength = 8, kWords = 6;
constexpr std::array<Index, 8> kPlacedSizes{4, 6, 8, 12, 16, 20, 24, 32};

struct PlacedRule {
  const char *name, *title;
};
constexpr std::array kRules{PlacedRule{"previous", "Every query keeps the token before it"},
                            PlacedRule{"copy", "Every query keeps the last earlier copy of itself"}};

struct Encoding {
  const char *name, *label;
  std::optional<PositionKind> kind;
};
constexpr std::array kEncodings{
    Encoding{"none", "no positions", std::nullopt}, Encoding{"sinusoidal", "sinusoidal", PositionKind::sinusoidal},
    Encoding{"rotary", "rotary", PositionKind::rotary}, Encoding{"bias", "relative bias", PositionKind::bias}};

/// Causal self attention over the words of a drawn corpus, with the tokens that the rule keeps.
std::optional<AttentionTask> placed_task(const AttentionTask& corpus, const std::string& rule) {
  std::vector<Index> sequence, query, visible, select;
  RowMatrix tokens(corpus.tokens(), corpus.key_size());
  for (Index s = 0; s < corpus.sequences(); ++s) {
    const auto ids = corpus.ids(s);
    for (Index t = 0; t < corpus.length(s); ++t) {
      const auto at = ids.begin() + t;
      tokens.row(corpus.offset(s) + t) = corpus.embeddings().row(*at);
      const auto copy = std::find(std::make_reverse_iterator(at), ids.rend(), *at);
      const Index kept = rule == "previous" ? t - 1 : static_cast<Index>(ids.rend() - copy) - 1;
      if (kept < 0) continue;
      sequence.push_back(s);
      query.push_back(t);
      visible.push_back(t + 1);
      select.push_back(kept);
    }
  }
  const auto q = static_cast<Index>(query.size());
  if (q == 0) return {};
  TaskArrays arrays;
  arrays.tokens = Array::own(tokens);
  arrays.tokens.shape = {corpus.sequences(), corpus.longest(), corpus.key_size()};
  arrays.sequence = Array::own(std::move(sequence), {q});
  arrays.query_token = Array::own(std::move(query), {q});
  arrays.visible = Array::own(std::move(visible), {q});
  arrays.select = Array::own(std::move(select), {q});
  return AttentionTask(std::move(arrays));
}

class PositionsStudy final : public Study {
 public:
  StudyFacts facts() const override {
    return {
        .name = "positions",
        .title = "Selections that positions make possible",
        .setting = fmt::format("Causal self attention over {} sequences of {} tokens, drawn uniformly from {} words "
                               "that are unit Gaussian vectors of size d. Every query keeps the token before it, "
                               "or the last earlier copy of its own word. The SVM of that selection without "
                               "positions, with sinusoidal ones added to the words, with rotary ones, and with a "
                               "bias per distance; 200 draws each.",
                               kSequences, kLength, kWords),
        .paper = "Expected: tokens that are equal conflict without positions, whatever d is, and positions end that.",
        .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const PlacedRule& rule : kRules) {
      for (const Index d : kPlacedSizes) {
        cells.push_back(
            {.name = fmt::format("{} d={}", rule.name, d),
             .settings = {{"rule", rule.name}, {"n", kSequences}, {"T", kLength}, {"words", kWords}, {"d", d}},
             .runs = 200,
             .cost = static_cast<double>(d) * 10});
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const Json& s = cell.settings;
    const Recipe recipe{
        .law = Law::next_token, .n = s.at("n"), .T = s.at("T"), .d = s.at("d"), .vocabulary = s.at("words")};
    const std::vector<AttentionTask> corpora = draw_tasks(recipe, draws, threads);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      const auto task = placed_task(corpora[k], s.at("rule"));
      if (!task) return StudyRow::rejected("no query");
      VerifyingSolver solver(alone);
      StudyRow row;
      for (const Encoding& encoding : kEncodings) {
        const AttentionTask placed = encoding.kind ? with_positions(*task, {.kind = *encoding.kind}) : *task;
        const MarginSolution solution = solver.solve(MarginProblem::attention(placed, *placed.select()));
        if (!solver.verified()) return StudyRow::rejected(kNotVerified);
        row.result[encoding.name] = solution.status == MarginStatus::optimal ? 1 : 0;
      }
      return row;
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"rule", "which token queries keep"},
                             {"d", "size of tokens"},
                             {"runs", "tasks drawn"},
                             {"none", "share separable without positions"},
                             {"sinusoidal", "share separable with sinusoidal positions"},
                             {"rotary", "share separable with rotary positions"},
                             {"bias", "share separable with a bias per distance"}};
    for (const CellRows& rows : cells) {
      const auto results = rows.results();
      Json row = Json::array({rows.cell.settings.at("rule"), rows.cell.settings.at("d"), rows.accepted()});
      for (const Encoding& encoding : kEncodings) row.push_back(sample_of(results, encoding.name).mean);
      summary.table.rows.push_back(std::move(row));
    }
    summary.figure = {.title = "Selections that positions make possible",
                      .caption =
                          "Share of tasks whose selection has a W, each proven either way, with 95 % Wilson "
                          "intervals.",
                      .columns = 2};
    for (const PlacedRule& rule : kRules) summary.figure.panels.push_back(panel_of(summary.table, rule));
    explain(summary);
    return summary;
  }

 private:
  static Panel panel_of(const Table& table, const PlacedRule& rule) {
    Panel panel{.title = rule.title,
                .x_label = kSizeLabel,
                .y_label = "share of tasks with a W",
                .x_range = {{2, 34}},
                .y_range = {{0, 1}}};
    for (std::size_t k = 0; k < kEncodings.size(); ++k) {
      Curve curve{.label = kEncodings[k].label, .mark = Mark::bars, .style = static_cast<int>(k)};
      for (const Json& row : table.rows) {
        if (row.at(0) != rule.name || row.at(2) == 0) continue;
        curve.x.push_back(row.at(1));
        curve.y.push_back(row.at(3 + k));
        const Interval interval = wilson(row.at(3 + k), row.at(2));
        curve.low.push_back(interval.low);
        curve.high.push_back(interval.high);
      }
      panel.curves.push_back(std::move(curve));
    }
    return panel;
  }

  /// From which d on every task of a rule had a W.
  static std::string enough(const Table& table, const char* rule, std::size_t column) {
    std::string from;
    for (const Json& row : table.rows) {
      if (row.at(0) != rule) continue;
      if (row.at(column) != 1) {
        from.clear();
      } else if (from.empty()) {
        from = fmt::format("from d = {} on", row.at(1).get<Index>());
      }
    }
    return from.empty() ? "at no d that was tried" : from;
  }

  static void explain(Summary& summary) {
    const Table& table = summary.table;
    for (const PlacedRule& rule : kRules) {
      double without = 0;
      for (const Json& row : table.rows) {
        if (row.at(0) == rule.name && row.at(3).is_number()) without = std::max(without, row.at(3).get<double>());
      }
      summary.findings.push_back(
          {.paper = fmt::format("{}: words that occur twice conflict without positions, and positions end that.",
                                rule.title),
           .ours =
               fmt::format("Without positions {}. All have one {} with sinusoidal positions, {} with rotary ones, and "
                           "{} with a bias "
                           "per distance.",
                           without == 0 ? "no task has a W"
                                        : fmt::format("at most {:.1f} % of the tasks have a W at any d", 100 * without),
                           enough(table, rule.name, 4), enough(table, rule.name, 5), enough(table, rule.name, 6)),
           .why = ""});
    }
  }
};

}  // namespace

std::unique_ptr<Study> positions_study() { return std::make_unique<PositionsStudy>(); }

}  // namespace attsvm::internal
