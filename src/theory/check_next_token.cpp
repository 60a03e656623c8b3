#include "attsvm/next_token.h"
#include "theory/check_tools.h"
#include "theory/run_shares.h"

namespace attsvm {

using namespace internal;

NextTokenCheck check_next_token(const AttentionTask& task, const RunTrace* run, const CheckSettings& settings,
                                Threads& threads) {
  NextTokenCheck check{.graphs = priority_graphs(task), .smallest = {}};
  SolveSettings solves = solve_settings(settings, check.complete);
  MarginSolver solver(threads);
  const MarginProblem problem = MarginProblem::graph(task, check.graphs);
  check.smallest = solver.solve(problem, solves);
  check.separable = check.smallest.status == MarginStatus::optimal;
  check.decided = is_settled(check.smallest.status);
  if (check.separable) {
    solves.norm = Norm::nuclear();
    check.nuclear = solver.solve(problem, solves, &check.smallest);
  }
  try {
    check.finite.emplace(task, check.graphs);
  } catch (const InputError&) {  // too many tied tokens: `finite` stays empty
  }
  if (run == nullptr) return check;

  check.implied = run->implied;
  check.correlation_fro = correlations(run->record, solved(check.smallest));
  check.correlation_nuc = correlations(run->record, check.nuclear ? solved(*check.nuclear) : nullptr);
  if (check.finite && check.finite->dimension() > 0) {
    for (const ConstRows& point : run->record)
      check.finite_distance.push_back((check.finite->project(point) - check.finite->W()).norm());
  }
  std::vector<const MarginSolution*> known{&check.smallest};
  if (check.nuclear) known.push_back(&*check.nuclear);
  check.shares = shares_along(*run, problem, known, settings.norms, solves, solver).list;
  return check;
}

}  // namespace attsvm
