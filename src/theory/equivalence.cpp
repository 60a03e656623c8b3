#include <cmath>

#include "theory/selections.h"

namespace attsvm::internal {
namespace {

Index largest_token(const AttentionTask& task, const RowMatrix& log_attention, Index query) {
  Index best = task.seen(query).front();
  for (const Index t : task.seen(query)) {
    if (log_attention(query, t) > log_attention(query, best)) best = t;
  }
  return best;
}

}  // namespace

Selection kept_tokens(const AttentionTask& task, const RowMatrix& log_attention, double threshold) {
  std::vector<std::vector<Index>> sets(static_cast<std::size_t>(task.queries()));
  for (Index i = 0; i < task.queries(); ++i) {
    const Index best = largest_token(task, log_attention, i);
    for (const Index t : task.seen(i)) {
      if (t == best || log_attention(i, t) >= std::log(threshold)) sets[static_cast<std::size_t>(i)].push_back(t);
    }
  }
  return Selection::sets(sets);
}

Equivalence fit_equivalence(const AttentionTask& task, const Selection& kept, const RowMatrix& W,
                            const RowMatrix& log_attention, const SolveSettings& settings, MarginSolver& solver) {
  Equivalence fit;
  fit.gen = solver.solve(MarginProblem::attention(task, kept), settings);
  fit.finite = solver.solve(MarginProblem::finite_part(task, kept, log_attention), settings);
  std::vector<Index> largest;
  for (Index i = 0; i < task.queries(); ++i) largest.push_back(largest_token(task, log_attention, i));
  fit.single = solver.solve(MarginProblem::attention(task, Selection::single(largest)), settings);
  if (!fit.holds_together()) return fit;
  const double square = fit.gen.W.squaredNorm();
  fit.R = square > 0 ? (W - fit.finite.W).cwiseProduct(fit.gen.W).sum() / square : 0;
  fit.W = fit.finite.W + fit.R * fit.gen.W;
  return fit;
}

}  // namespace attsvm::internal
