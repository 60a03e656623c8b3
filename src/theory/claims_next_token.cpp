#include <fmt/format.h>

#include <cmath>

#include "attsvm/next_token.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"

namespace attsvm::internal {
namespace {

constexpr Recipe kNextTokenTasks{.law = Law::next_token, .n = 6, .T = 4, .d = 8, .vocabulary = 6};

/// How far a run on a next-token task is from its limits.
struct NextTokenRun {
  bool strict = false, tied = false;                 ///< some order is strict; some tokens are tied
  double angle = kUnmeasured, before = kUnmeasured;  ///< 1 − correlation with the graph SVM, and after a tenth of steps
  double nuclear = kUnmeasured, frobenius = kUnmeasured;  ///< of (K,Q): 1 − correlation with both SVMs
  double finite = 0, finite_before = 0;  ///< distance of the finite part, and after a tenth of the steps
  RowMatrix W{};
};

NextTokenRun follow(const AttentionTask& task, Index steps, std::uint64_t seed, std::uint32_t instance,
                    Threads& alone) {
  const auto graphs = priority_graphs(task);
  const MarginProblem problem = MarginProblem::graph(task, graphs);
  const FinitePart finite(task, graphs);
  TrainSettings training{.optimizer = Optimizer::gd,
                         .step = 1,
                         .steps = steps,
                         .seed = seed,
                         .instance = instance,
                         .record = {.at = {steps / 10, steps}}};
  const TrainedRun run = train(task, training, alone);
  NextTokenRun out{.tied = finite.dimension() > 0, .W = run.W};
  if (out.tied) {
    out.finite = (finite.project(run.W) - finite.W()).norm();
    out.finite_before = (finite.project(run.records.front().W) - finite.W()).norm();
  }
  for (const PriorityGraph& graph : graphs) out.strict = out.strict || graph.orders() > 0;
  if (!out.strict) return out;
  VerifyingSolver solver(alone);
  const MarginSolution smallest = solver.solve(problem), nuclear = solver.solve(problem, Norm::nuclear());
  if (!solver.verified()) throw std::logic_error("a graph SVM does not pass verify");
  out.angle = distance(run.W, smallest);
  out.before = distance(run.records.front().W, smallest);
  training.param = Parametrization::KQ;
  const RowMatrix product = train(task, training, alone).W;
  out.nuclear = distance(product, nuclear);
  out.frobenius = distance(product, smallest);
  return out;
}

}  // namespace

ClaimResult test_next_token(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Index kSteps = 20'000;
  constexpr double kAngle = 0.05, kFinite = 0.01;
  Tally tally(claim, settings);
  std::vector<double> angles, finites, nuclear, frobenius;
  tally.continues(angles, finites, nuclear, frobenius);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kNextTokenTasks, draws, threads);
    std::vector<NextTokenRun> runs(tasks.size());
    tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      runs[k] = follow(tasks[k], kSteps, settings.seed, draws.instance(k), alone);
    });
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      const NextTokenRun& run = runs[k];
      const bool turned = !run.strict || (run.angle <= kAngle && run.angle < run.before);
      const double share = std::max(run.strict ? run.angle / kAngle : 0, run.finite / kFinite);
      const bool settled = !run.tied || (run.finite <= kFinite && run.finite < run.finite_before);
      tally.add(tasks[k], turned && settled, share,
                fmt::format("1 - correlation {:.3g} ({:.3g} after a tenth of the steps), finite part off by {:.3g}",
                            run.strict ? run.angle : 0, run.strict ? run.before : 0, run.finite),
                {{"x_W", Array::own(run.W)}});
      if (run.tied) finites.push_back(run.finite);
      if (!run.strict) continue;
      angles.push_back(run.angle);
      nuclear.push_back(run.nuclear);
      frobenius.push_back(run.frobenius);
    }
  });
  tally.figure("tasks with tied tokens", static_cast<double>(finites.size()));
  const auto show = [&](const char* label, const std::vector<double>& numbers) {
    if (!numbers.empty()) tally.figure(label, median(numbers));
  };
  show("median 1 - correlation with the graph SVM", angles);
  show("median distance of the finite part", finites);
  show("K and Q: median 1 - correlation with the nuclear graph SVM", nuclear);
  show("K and Q: median 1 - correlation with the Frobenius graph SVM", frobenius);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
