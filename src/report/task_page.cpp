#include "report/task_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "attsvm/error.h"
#include "attsvm/margin.h"
#include "attsvm/theory.h"
#include "attsvm/version.h"
#include "report/run_part.h"
#include "report/teller.h"
#include "report/way_out.h"

namespace attsvm::internal {
namespace {

/// The check of the selection and its SVMs. A task without a head has no scores: its SVMs are solved, not checked.
struct Judgement {
  Check check;
  bool judged = false;
};

const Answer* first_valid(std::span<const Answer> answers) {
  const auto found =
      std::find_if(answers.begin(), answers.end(), [](const Answer& one) { return one.verification.valid; });
  return found != answers.end() ? &*found : nullptr;
}

/// The norms in which the page follows the run beside the implied one. Beyond some size, those whose solves take long
/// are left out: a page must not take minutes.
std::vector<Norm> shared_norms(const AttentionTask& task) {
  constexpr Index kRows = 1'000, kNumbers = 4'000;
  const Index rows = task.visible().total() - task.queries();
  const bool small = rows <= kRows && task.key_size() * task.query_size() <= kNumbers;
  return small ? CheckSettings{}.norms : std::vector<Norm>{Norm::frobenius(), Norm::nuclear()};
}

Check judge_run(const AttentionTask& task, const ReportRequest& request, const ReportRun& run, Teller& teller,
                Threads& threads) {
  teller.begin(fmt::format("solving the SVMs of {}", run.file));
  const CheckSettings settings{
      .threshold = request.threshold, .progress = teller.of_solves(), .norms = shared_norms(task)};
  return check_run(task, trace_of(run.run), settings, threads);
}

Judgement judge(const AttentionTask& task, const ReportRequest& request, std::span<const Answer> answers,
                Teller& teller, Threads& threads) {
  if (!request.runs.empty()) return {judge_run(task, request, request.runs.front(), teller, threads), true};
  teller.begin("solving the SVMs of the selected tokens");
  Selection selection;
  if (const Answer* first = first_valid(answers)) {
    selection = Selection::from_array(first->stored.select, task.visible(), task.longest(), "select");
  } else {
    selection = task.select() ? *task.select() : optimal_tokens(task).selection;
  }
  if (task.head().kind != HeadKind::none)
    return {check_selection(task, std::move(selection), {.progress = teller.of_solves()}, threads), true};
  Judgement result{.check = {.selection = std::move(selection)}};
  const MarginProblem problem = MarginProblem::attention(task, result.check.selection);
  MarginSolver solver(threads);
  const MarginSolution& smallest = result.check.gen.emplace(solver.solve(problem, {.progress = teller.of_solves()}));
  result.check.separable = smallest.status == MarginStatus::optimal;
  result.check.decided = is_settled(smallest.status);
  if (result.check.separable)
    result.check.nuclear = solver.solve(problem, {.norm = Norm::nuclear(), .progress = teller.of_solves()}, &smallest);
  return result;
}

/// Adds the SVMs of the selection that none of the given solutions answers.
void add_solved(const AttentionTask& task, const Check& check, std::vector<Answer>& answers) {
  const Array select = check.selection.mask(task.longest());
  const MarginProblem problem = MarginProblem::attention(task, check.selection);
  const MarginSolution* fro = check.report ? &check.report->solution : check.gen ? &*check.gen : nullptr;
  for (const MarginSolution* solution :
       {fro, check.nuclear ? &*check.nuclear : nullptr, check.implied_solution ? &*check.implied_solution : nullptr}) {
    if (solution == nullptr) continue;
    const std::string norm = solution->norm.name();
    const bool given = std::any_of(answers.begin(), answers.end(),
                                   [&](const Answer& answer) { return answer.settles(norm, &select); });
    if (!given) answers.push_back(solved_answer(task, problem, *solution));
  }
}

Json queries_json(const AttentionTask& task, const Judgement& judgement) {
  Json sequence = Json::array(), visible = Json::array(), reach = Json::array(), hidden = Json::array(),
       label = Json::array(), kept = Json::array();
  bool any_hidden = false;
  for (Index i = 0; i < task.queries(); ++i) {
    sequence.push_back(task.sequence(i));
    visible.push_back(task.visible(i));
    reach.push_back(reach_of(task, i));
    std::vector<Index> unseen;
    for (Index t = 0; t < reach_of(task, i); ++t) {
      if (!task.visible().sees(i, t)) unseen.push_back(t);
    }
    any_hidden = any_hidden || !unseen.empty();
    hidden.push_back(std::move(unseen));
    label.push_back(task.label(i));
    const auto tokens = judgement.check.selection.kept(i);
    kept.push_back(std::vector<Index>(tokens.begin(), tokens.end()));
  }
  return {{"sequence", std::move(sequence)},
          {"visible", std::move(visible)},
          {"reach", std::move(reach)},
          {"hidden", any_hidden ? std::move(hidden) : Json(nullptr)},
          {"label", std::move(label)},
          {"kept", std::move(kept)},
          {"optimal", judgement.judged ? Json(judgement.check.optimal.selection.firsts()) : Json(nullptr)}};
}

Json tokens_json(const std::vector<SupportToken>& tokens) {
  Json query = Json::array(), token = Json::array(), gap = Json::array(), slack = Json::array();
  for (const SupportToken& one : tokens) {
    query.push_back(one.query);
    token.push_back(one.token);
    gap.push_back(one.score_gap);
    slack.push_back(one.slack);
  }
  return {{"count", tokens.size()}, {"query", query}, {"token", token}, {"score_gap", gap}, {"slack", slack}};
}

Json check_json(const Judgement& judgement) {
  if (!judgement.judged) return nullptr;
  const Check& check = judgement.check;
  const std::vector<SupportToken> none;
  return {{"verdict", name_of(check.verdict)},
          {"reason", check.reason},
          {"separable", check.decided ? Json(check.separable) : Json(nullptr)},
          {"locally_optimal", check.report ? Json(check.report->locally_optimal) : Json(nullptr)},
          {"ties", check.optimal.ties.size()},
          {"support", tokens_json(check.report ? check.report->support : none)},
          {"ambiguous", tokens_json(check.report ? check.report->ambiguous : none)}};
}

/// The tokens in the plane, with what is known about each of them.
Json plane_json(const AttentionTask& task, const Axes& axes, const std::vector<std::string>& names) {
  Json plane = axes.tokens_json();
  const auto shown = static_cast<std::ptrdiff_t>(task.offset(axes.shown_sequences()));
  plane["names"] = names.empty() ? Json(nullptr) : Json(std::vector<std::string>(names.begin(), names.begin() + shown));
  return plane;
}

std::string selection_words(const ReportRequest& request, const AttentionTask& task, bool of_solution) {
  if (request.runs.size() > 1) return "chosen by the first run";
  if (!request.runs.empty()) return "chosen by training";
  if (of_solution) return "of the first solution";
  return task.select() ? "given with the task" : "the optimal tokens";
}

/// The task as the run saw it: a run that trained its head is judged by that head.
AttentionTask task_of(const AttentionTask& task, const ReportRun& run) {
  if (run.run.v.size() == 0) return task;
  return with_place(run.file, [&] { return with_head(task, run.run.v); });
}

}  // namespace

Json task_page(const AttentionTask& given_task, const ReportRequest& request, Threads& threads) {
  const AttentionTask task = request.runs.empty() ? given_task : task_of(given_task, request.runs.front());
  std::vector<Answer> answers;
  Teller teller(request);
  for (const ReportSolution& given : request.solutions) {
    teller.begin(fmt::format("verifying {}", given.file));
    answers.push_back(judged(task, given));
  }
  const bool of_solution = first_valid(answers) != nullptr;
  const Judgement judgement = judge(task, request, answers, teller, threads);
  teller.begin("verifying the solutions");
  add_solved(task, judgement.check, answers);

  const Array select = judgement.check.selection.mask(task.longest());
  const auto main = std::find_if(answers.begin(), answers.end(), [&](const Answer& answer) {
    return answer.has_W() && answer.settles("fro", &select);
  });
  const Axes axes(task, main != answers.end() ? &main->stored.W : nullptr, request.coordinates);
  Json solutions = Json::array();
  for (const Answer& answer : answers) solutions.push_back(answer_json(task, &axes, answer));
  Json data{{"kind", "report"},
            {"attsvm", ATTSVM_VERSION},
            {"title", request.title},
            {"playground", request.playground.empty() ? Json(nullptr) : Json(request.playground)},
            {"command", request.command},
            {"settings", {{"threshold", request.threshold}, {"coordinates", request.coordinates}}},
            {"task", Json::parse(task_facts(task))},
            {"selection", selection_words(request, task, of_solution)},
            {"queries", queries_json(task, judgement)},
            {"check", check_json(judgement)},
            {"plane", plane_json(task, axes, request.token_names)},
            {"solutions", std::move(solutions)},
            {"main", main != answers.end() ? Json(std::distance(answers.begin(), main)) : Json(nullptr)},
            {"way_out", way_out_json(task, judgement.check, threads)},
            {"runs", Json::array()}};
  for (std::size_t k = 0; k < request.runs.size(); ++k) {
    const ReportRun& run = request.runs[k];
    const AttentionTask own = task_of(given_task, run);
    const Check check = k == 0 ? judgement.check : judge_run(own, request, run, teller, threads);
    const bool same = check.selection == judgement.check.selection;
    std::vector<Answer> others;  // a run that selects other tokens is compared with their SVMs
    if (!same) add_solved(own, check, others);
    data["runs"].push_back(run_json(own, axes, run, check, {.answers = same ? answers : others, .shown = same},
                                    main != answers.end() ? &*main : nullptr, threads));
  }
  return data;
}

}  // namespace attsvm::internal
