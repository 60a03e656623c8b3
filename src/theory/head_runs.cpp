#include "theory/head_runs.h"

#include "theory/claim_tools.h"

namespace attsvm::internal {

std::vector<double> head_distances(const HeadsRun& heads, const RowMatrix& W) {
  std::vector<double> list;
  const Index d = W.rows() / static_cast<Index>(heads.svm.size());
  for (const MarginSolution& svm : heads.svm)
    list.push_back(distance(W.middleRows(static_cast<Index>(list.size()) * d, d), svm));
  return list;
}

HeadsRun run_heads(const AttentionTask& task, const TrainSettings& settings, Threads& alone) {
  HeadsRun out{.run = train(task, settings, alone)};
  out.selected = attention_map(task, out.run.W, alone).selected;
  out.division = division_of(out.selected, settings.heads);
  std::vector<MarginProblem> problems;
  for (Index h = 0; h < settings.heads; ++h) {
    const auto first = out.selected.begin() + h * task.queries();
    problems.push_back(MarginProblem::attention(task, Selection::single({first, first + task.queries()})));
  }
  out.svm = solve_verified(problems, Norm::frobenius(), alone);
  out.distance = head_distances(out, out.run.W);
  const Index d = task.key_size();
  RowMatrix all = RowMatrix::Zero(out.run.W.rows(), out.run.W.cols());
  bool solved = true;
  for (Index h = 0; h < settings.heads; ++h) {
    const MarginSolution& svm = out.svm[static_cast<std::size_t>(h)];
    solved = solved && svm.status == MarginStatus::optimal;
    if (solved) all.middleRows(h * d, d) = svm.W;
  }
  out.level = solved ? 1 - correlation(out.run.W, all) : kUnmeasured;
  return out;
}

std::vector<Index> selected_alone(const AttentionTask& task, TrainSettings settings, const TrainedRun& together,
                                  Threads& alone) {
  const Index heads = settings.heads, dv = task.value_size();
  settings.heads = 1;
  settings.shared_norm = false;
  std::vector<Index> selected;
  for (Index h = 0; h < heads; ++h) {
    const TrainedRun run = train(task, settings, alone, {.v = together.head.v.segment(h * dv, dv)});
    const std::vector<Index> tokens = attention_map(task, run.W, alone).selected;
    selected.insert(selected.end(), tokens.begin(), tokens.end());
  }
  return selected;
}

}  // namespace attsvm::internal
