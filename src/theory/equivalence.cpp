#include <cmath>

#include "attsvm/theory.h"

namespace attsvm {
namespace {

Index largest_token(const AttentionTask& task, const RowMatrix& log_attention, Index query) {
  Index best = 0;
  log_attention.row(query).head(task.visible(query)).maxCoeff(&best);
  return best;
}

}  // namespace

Selection kept_tokens(const AttentionTask& task, const RowMatrix& log_attention, double threshold) {
  std::vector<std::vector<Index>> sets(static_cast<std::size_t>(task.queries()));
  for (Index i = 0; i < task.queries(); ++i) {
    const Index best = largest_token(task, log_attention, i);
    for (Index t = 0; t < task.visible(i); ++t) {
      if (t == best || log_attention(i, t) >= std::log(threshold)) sets[static_cast<std::size_t>(i)].push_back(t);
    }
  }
  return Selection::sets(sets);
}

Equivalence fit_equivalence(const AttentionTask& task, const Selection& kept, const RowMatrix& W,
                            const RowMatrix& log_attention, MarginSolver& solver, const std::function<bool()>& stop) {
  Equivalence fit;
  SolveSettings settings;
  if (stop) settings.progress = [&](const SolveProgress&) { return stop(); };
  solver.solve(MarginProblem::attention(task, kept), settings, fit.gen);
  solver.solve(MarginProblem::finite_part(task, kept, log_attention), settings, fit.finite);
  std::vector<Index> largest;
  for (Index i = 0; i < task.queries(); ++i) largest.push_back(largest_token(task, log_attention, i));
  solver.solve(MarginProblem::attention(task, Selection::single(largest)), settings, fit.single);
  if (!fit.holds_together()) return fit;
  const double square = fit.gen.W.squaredNorm();
  fit.R = square > 0 ? (W - fit.finite.W).cwiseProduct(fit.gen.W).sum() / square : 0;
  fit.W = fit.finite.W + fit.R * fit.gen.W;
  return fit;
}

}  // namespace attsvm
