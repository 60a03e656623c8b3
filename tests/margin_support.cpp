#include "margin_support.h"

#include <algorithm>

namespace attsvm::test {

AttentionTask separable(Recipe recipe, std::uint64_t seed) {
  recipe.law = Law::separable;
  return generate(recipe, seed).task;
}

MarginProblem selected(const AttentionTask& task, std::span<const Index> relax) {
  return MarginProblem::attention(task, *task.select(), relax);
}

MarginProblem kept(const AttentionTask& task, Index token, std::span<const Index> relax) {
  return MarginProblem::attention(
      task, Selection::single(std::vector<Index>(static_cast<std::size_t>(task.queries()), token)), relax);
}

MarginProblem first_kept(const AttentionTask& task, std::span<const Index> relax) { return kept(task, 0, relax); }

MarginProblem of_optimal_tokens(const AttentionTask& task) {
  return MarginProblem::attention(task, optimal_tokens(task).selection);
}

Selection with_ties(const AttentionTask& task) {
  std::vector<std::vector<Index>> kept;
  for (Index i = 0; i < task.queries(); ++i) {
    const Index t = task.select()->first(i);
    kept.push_back({t});
    if (i % 3 == 0 && task.visible(i) > 1) kept.back().push_back((t + 1) % task.visible(i));
  }
  return Selection::sets(kept);
}

std::vector<Index> every_fourth(const AttentionTask& task) {
  std::vector<Index> relax;
  for (Index i = 0; i < task.queries(); i += 4) relax.push_back(i);
  return relax;
}

namespace {

Array changed(const Array& array, const std::function<double(double)>& change) {
  const auto old = f64_span(array);
  std::vector<double> numbers(old.begin(), old.end());
  std::transform(numbers.begin(), numbers.end(), numbers.begin(), change);
  return Array::own(numbers, array.shape);
}

}  // namespace

AttentionTask with_tokens(const AttentionTask& task, const std::function<double(double)>& change) {
  TaskArrays arrays = task.arrays();
  arrays.tokens = changed(arrays.tokens, change);
  return AttentionTask(arrays);
}

AttentionTask scaled(const AttentionTask& task, double tokens, double queries) {
  TaskArrays arrays = task.arrays();
  arrays.tokens = changed(arrays.tokens, [&](double x) { return x * tokens; });
  arrays.queries = changed(arrays.queries, [&](double x) { return x * queries; });
  return AttentionTask(arrays);
}

AttentionTask make_task(Index n, Index T, const std::vector<double>& tokens, const std::vector<double>& queries,
                        const std::vector<std::vector<Index>>& kept) {
  TaskArrays arrays{.tokens = Array::own(tokens, {n, T, static_cast<Index>(tokens.size()) / n / T})};
  if (!queries.empty()) arrays.queries = Array::own(queries, {n, static_cast<Index>(queries.size()) / n});
  if (!kept.empty()) arrays.select = Selection::sets(kept).mask(T);
  return AttentionTask(arrays);
}

AttentionTask of_rows(const RowMatrix& delta, const RowMatrix& zeta) {
  std::vector<double> tokens;
  for (Index i = 0; i < delta.rows(); ++i) {
    tokens.insert(tokens.end(), delta.row(i).begin(), delta.row(i).end());
    tokens.insert(tokens.end(), static_cast<std::size_t>(delta.cols()), 0.0);
  }
  return make_task(delta.rows(), 2, tokens, {zeta.data(), zeta.data() + zeta.size()});
}

MarginSolution proven(const MarginProblem& problem, const SolveSettings& settings, const MarginSolution* warm_start) {
  Threads threads(1);
  MarginSolution solution = solve(problem, settings, threads, warm_start);
  if (problem.kind() != ProblemKind::finite) {
    const Verification verdict =
        verify(problem.task(), stored(problem, solution, settings.tolerance), {.tolerance = settings.tolerance});
    EXPECT_TRUE(verdict.valid) << verdict.reason;
  }
  return solution;
}

MarginSolution optimum(const MarginProblem& problem) {
  MarginSolution solution = proven(problem);
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap << " " << solution.violation;
  return solution;
}

void expect_near(const RowMatrix& a, const RowMatrix& b, double relative) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.cols(), b.cols());
  EXPECT_LE((a - b).cwiseAbs().maxCoeff(), relative * b.cwiseAbs().maxCoeff()) << a << "\n\n" << b;
}

}  // namespace attsvm::test
