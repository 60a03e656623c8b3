#include <cstdlib>
#include <map>
#include <sstream>

#include "margin_support.h"
#include "trust/exact_oracle.h"
#include "trust/nasty_tasks.h"

// Compares answers on tasks that are hard to solve with rational arithmetic. A solve may stall if the optimum is beyond
// double precision; it must never claim anything false, and verify must accept every claim.

namespace attsvm::test {
namespace {

// Condition from which a solve may stall. In the norms of power 1 and ∞ the last resort is extended precision.
constexpr double kHardFrobenius = 1e8, kHardExtremes = 2e5, kHardOthers = 1e6;
constexpr double kBeyondDouble = 1e10;  // condition from which it may be called infeasible
constexpr Index kMostRows = 130;
constexpr double kLargestPenalty = 1e6;  // from which rounding the multipliers may cost the digits of the bound

/// Tasks per class: a few, or as many as ATTSVM_NASTY says.
std::uint64_t tasks_per_class() {
  const char* text = std::getenv("ATTSVM_NASTY");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 8;
}

/// The norms to solve in, from the comma-separated list ATTSVM_NASTY_NORMS.
std::vector<std::string> norms() {
  const char* text = std::getenv("ATTSVM_NASTY_NORMS");
  std::istringstream list(text != nullptr ? text : "fro,nuc,lp:1.5,lp:4,max,l1,spec,schatten:1.5,schatten:4");
  std::vector<std::string> names;
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

class NastyTasks : public testing::TestWithParam<std::string_view> {};

/// Two equations of a query nearly coincide, and their multipliers are so large that rounding them costs digits of the
/// bound, whatever the condition of the optimum. The gap shows that.
bool may_stall(std::string_view name) { return name == "kept tokens nearly equal to each other"; }

std::string complaint(const MarginProblem& problem, const MarginSolution& solution, const ExactAnswer& truth,
                      bool stalls) {
  const Verification verdict = verify(problem.task(), stored(problem, solution, SolveSettings{}.tolerance));
  const bool frobenius = solution.norm.is_frobenius();
  const bool extreme = !solution.norm.is_strictly_convex() && !solution.norm.is_nuclear();
  const double hard = frobenius ? kHardFrobenius : extreme ? kHardExtremes : kHardOthers;
  const double condition = truth.condition();
  if (is_settled(solution.status) && !verdict.valid) return "not verified: " + verdict.reason;
  if (solution.status == MarginStatus::optimal && !truth.feasible) return "optimal, but no W exists";
  if (solution.status == MarginStatus::infeasible && condition < kBeyondDouble)
    return "infeasible, but a W of norm " + std::to_string(truth.norm) + " exists";
  if (solution.status == MarginStatus::optimal && frobenius &&
      std::abs(solution.objective - truth.norm) > 1e-7 * truth.norm)
    return "optimal at " + std::to_string(solution.objective) + ", truly " + std::to_string(truth.norm);
  if (!std::isnan(solution.gap) && solution.dual_objective > solution.objective)
    return "the bound is above the objective";
  if (!is_settled(solution.status) && !stalls && condition < hard)
    return "stalled with gap " + std::to_string(solution.gap);
  return "";
}

TEST_P(NastyTasks, AnswersHold) {
  Threads threads(1);
  MarginSolver solver(threads);
  std::map<std::string, int> counts;
  for (std::uint64_t seed = 0; seed < tasks_per_class(); ++seed) {
    const NastyTask nasty = nasty_task(GetParam(), seed);
    const MarginProblem problem = nasty.problem();
    if (problem.rows() == 0 || problem.rows() > kMostRows) continue;
    const ExactAnswer truth = solve_exactly(problem);
    for (const std::string& norm : norms()) {
      const MarginSolution& solution = solver.solve(problem, {.norm = Norm::parse(norm)});
      const std::string wrong = complaint(problem, solution, truth, may_stall(GetParam()));
      EXPECT_EQ(wrong, "") << "seed " << seed << ", " << norm << ", condition " << truth.condition();
      ++counts[norm + (truth.feasible ? " feasible " : " infeasible ") + std::string(name_of(solution.status))];
    }
  }
  if (std::getenv("ATTSVM_NASTY") != nullptr) {
    for (const auto& [what, count] : counts) std::printf("  %-32s %d\n", what.c_str(), count);
  }
}

// A soft margin always has an optimum, and what verify accepts as one is proven to be; so nothing but stalls is left to
// look for. Scaling tokens by s and penalties by 1/s² is the same problem.
TEST_P(NastyTasks, SoftMarginsAreSolved) {
  Threads threads(1);
  MarginSolver solver(threads);
  std::map<std::string, int> counts;
  for (std::uint64_t seed = 0; seed < tasks_per_class(); ++seed) {
    for (const double scale : {1.0, 0x1p430, 0x1p-400}) {
      NastyTask nasty = nasty_task(GetParam(), seed);
      if (scale != 1) {
        // Rows would have the square of the scale, or none of it.
        if (nasty.task.arrays().query_token.given() || nasty.task.arrays().keys.given()) continue;
        nasty.task = with_tokens(nasty.task, [&](double x) { return x * scale; });
      }
      const MarginProblem problem = nasty.problem();
      if (problem.rows() == 0 || problem.rows() > kMostRows) continue;
      for (const double C : {1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
        const MarginSolution& solution = solver.solve(problem, {.soft = {C / scale / scale}});
        const Verification verdict = verify(problem.task(), stored(problem, solution, SolveSettings{}.tolerance));
        const auto where = "seed " + std::to_string(seed) + ", scale " + std::to_string(std::ilogb(scale)) +
                           " bits, C = " + std::to_string(C) + ", gap " + std::to_string(solution.gap);
        EXPECT_TRUE(verdict.valid) << where << ": " << verdict.reason;
        if (!may_stall(GetParam()) && C <= kLargestPenalty) {
          EXPECT_EQ(solution.status, MarginStatus::optimal) << where;
        }
        ++counts[std::to_string(std::ilogb(scale)) + " bits " + std::string(name_of(solution.status))];
      }
    }
  }
  if (std::getenv("ATTSVM_NASTY") != nullptr) {
    for (const auto& [what, count] : counts) std::printf("  %-32s %d\n", what.c_str(), count);
  }
}

INSTANTIATE_TEST_SUITE_P(Trust, NastyTasks, testing::ValuesIn(nasty_classes().begin(), nasty_classes().end()),
                         [](const testing::TestParamInfo<std::string_view>& one) {
                           std::string name;
                           for (const char letter : one.param) name += std::isalnum(letter) != 0 ? letter : '_';
                           return name;
                         });

}  // namespace
}  // namespace attsvm::test
