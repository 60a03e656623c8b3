#include "report/next_token_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "attsvm/next_token.h"
#include "attsvm/version.h"
#include "base/refuse.h"
#include "margin/stored_solution.h"
#include "report/graph_part.h"
#include "report/run_curves.h"
#include "report/teller.h"

namespace attsvm::internal {
namespace {

NextTokenCheck judge_graphs(const AttentionTask& task, const ReportRun* run, Teller& teller, Threads& threads) {
  teller.begin(run == nullptr ? "solving the graph SVMs" : fmt::format("solving the graph SVMs for {}", run->file));
  const CheckSettings settings{.progress = teller.of_solves()};
  if (run == nullptr) return check_next_token(task, nullptr, settings, threads);
  const RunTrace trace = trace_of(run->run);
  return check_next_token(task, &trace, settings, threads);
}

/// Adds the graph SVMs that none of the given solutions answers.
void add_graph_svms(const AttentionTask& task, const NextTokenCheck& check, std::vector<Answer>& answers) {
  const MarginProblem problem = MarginProblem::graph(task, check.graphs);
  for (const MarginSolution* solution : {&check.smallest, check.nuclear ? &*check.nuclear : nullptr}) {
    if (solution == nullptr) continue;
    const bool given = std::any_of(answers.begin(), answers.end(),
                                   [&](const Answer& one) { return one.settles(solution->norm.name()); });
    if (!given) answers.push_back(solved_answer(task, problem, *solution));
  }
}

Json finite_json(const NextTokenCheck& check) {
  if (!check.finite) return nullptr;
  return {{"dimension", check.finite->dimension()}, {"norm", check.finite->W().norm()}, {"loss", check.finite->loss()}};
}

Json curves_json(const AttentionTask& task, const ReportRun& run, const NextTokenCheck& check,
                 std::span<const Answer> answers, Threads& threads) {
  const RunCurves curves(run);
  Json data = curves.json(check.implied, check.shares);
  data.update(curves.selecting(task, threads));
  data["correlations"] = curves.correlations({.answers = answers, .shown = true});
  data["finite_distance"] = curves.shown(check.finite_distance);
  return data;
}

}  // namespace

Json next_token_page(const AttentionTask& task, const ReportRequest& request, Threads& threads) {
  if (!request.coordinates.empty()) refuse("coordinates cannot be used with a next-token task: its page has no plane");
  if (!request.token_names.empty())
    refuse("token names cannot be used with a next-token task: its array vocabulary names the tokens");
  std::vector<Answer> answers;
  Teller teller(request);
  for (const ReportSolution& given : request.solutions) {
    teller.begin(fmt::format("verifying {}", given.file));
    answers.push_back(judged(task, given));
  }
  const NextTokenCheck first =
      judge_graphs(task, request.runs.empty() ? nullptr : &request.runs.front(), teller, threads);
  teller.begin("verifying the solutions");
  add_graph_svms(task, first, answers);
  const GraphCounts counts(first.graphs);
  Json solutions = Json::array(), runs = Json::array();
  for (const Answer& answer : answers) solutions.push_back(answer_json(task, nullptr, answer));
  for (std::size_t k = 0; k < request.runs.size(); ++k) {
    const ReportRun& run = request.runs[k];
    if (k == 0) {
      runs.push_back(curves_json(task, run, first, answers, threads));
    } else {
      runs.push_back(curves_json(task, run, judge_graphs(task, &run, teller, threads), answers, threads));
    }
  }
  return {{"kind", "next-token"},
          {"attsvm", ATTSVM_VERSION},
          {"title", request.title},
          {"command", request.command},
          {"task", Json::parse(task_facts(task))},
          {"counts",
           {{"graphs", counts.graphs},
            {"components", counts.components},
            {"tied", counts.tied},
            {"orders", counts.orders},
            {"edges", counts.edges}}},
          {"graphs", graphs_to_draw(task, first.graphs)},
          {"separable", first.decided ? Json(first.separable) : Json(nullptr)},
          {"finite", finite_json(first)},
          {"solutions", std::move(solutions)},
          {"runs", std::move(runs)}};
}

}  // namespace attsvm::internal
