// Forges answers: what a solver proved is changed as the bytes say, and verify must not accept what is not true.
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "attsvm/attsvm.h"
#include "fuzz.h"

namespace {

using namespace attsvm;

constexpr double kSlack = 1e-7;  // relative; ten times the tolerance of verify

/// A problem with its proven answer.
struct Case {
  MarginProblem problem;
  StoredSolution truth;
  Verification proof;  ///< of the truth
};

Case answered(const MarginProblem& problem, const SolveSettings& settings) {
  Threads threads(1);
  const MarginSolution solution = solve(problem, settings, threads);
  Case made{problem, stored(problem, solution, settings.tolerance), {}};
  made.proof = verify(problem.task(), made.truth);
  fuzz::require(made.proof.valid && is_settled(solution.status), "a true answer is refused");
  return made;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const AttentionTask task = generate({.law = Law::separable, .n = 3, .T = 3, .d = 3, .dz = 2}, 1).task;
  const Selection own = *task.select();
  const std::vector<Index> relax{1};
  for (const char* norm : {"fro", "nuc", "spec", "max", "l1", "lp:3", "schatten:4"})
    all.push_back(answered(MarginProblem::attention(task, own), {.norm = Norm::parse(norm)}));
  for (const char* norm : {"fro", "nuc"})
    all.push_back(answered(MarginProblem::attention(task, own, relax), {.norm = Norm::parse(norm)}));
  all.push_back(answered(MarginProblem::attention(task, own), {.soft = {0.5}}));
  const Selection sets = Selection::sets({{0, 1}, {1}, {0, 2}});
  for (const char* norm : {"fro", "nuc"})
    all.push_back(answered(MarginProblem::attention(task, sets), {.norm = Norm::parse(norm)}));
  const AttentionTask conflict = generate({.law = Law::infeasible, .n = 3, .T = 3, .d = 2}, 1).task;
  all.push_back(answered(MarginProblem::attention(conflict, *conflict.select()), {}));
  const AttentionTask prompt =
      generate({.law = Law::separable, .n = 3, .T = 3, .d = 3, .pattern = QueryPattern::prompt}, 1).task;
  all.push_back(answered(MarginProblem::attention(prompt, *prompt.select()), {}));
  const AttentionTask next = generate({.law = Law::next_token, .n = 4, .T = 3, .d = 4, .vocabulary = 4}, 1).task;
  all.push_back(answered(MarginProblem::graph(next, priority_graphs(next)), {}));
  return all;
}

/// The bytes, one by one; zeros after the last.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool more() const { return at_ < bytes_.size(); }
  std::size_t below(std::size_t count) { return count == 0 ? 0 : next() % count; }

 private:
  std::size_t next() { return more() ? bytes_[at_++] : 0; }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

double changed(double value, double other, Choices& choices) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::array options{0.0,
                           -value,
                           2 * value,
                           value / 2,
                           std::nextafter(value, kInf),
                           std::nextafter(value, -kInf),
                           value * (1 + 1e-9),
                           value * (1 - 1e-9),
                           value * (1 + 1e-7),
                           value * (1 - 1e-7),
                           std::numeric_limits<double>::quiet_NaN(),
                           kInf,
                           value * 1e300,
                           value * 1e-300,
                           value + 1,
                           value + 1e22,
                           value - 1e-10,
                           value - 1e-3,
                           other,
                           value + other};
  return options[choices.below(options.size())];
}

std::span<double> numbers_of(StoredSolution& forged, std::size_t which) {
  const std::array<std::span<double>, 11> all{std::span(forged.W.data(), static_cast<std::size_t>(forged.W.size())),
                                              std::span(forged.K.data(), static_cast<std::size_t>(forged.K.size())),
                                              std::span(forged.Q.data(), static_cast<std::size_t>(forged.Q.size())),
                                              std::span(forged.rhs),
                                              std::span(forged.slack),
                                              std::span(forged.dual),
                                              std::span(forged.penalty),
                                              std::span(forged.xi),
                                              std::span(&forged.objective, 1),
                                              std::span(&forged.dual_objective, 1),
                                              std::span(&forged.tolerance, 1)};
  return all[which % all.size()];
}

void widen(RowMatrix& factor) {
  factor.conservativeResize(Eigen::NoChange, factor.cols() + 1);
  if (factor.rows() > 0) factor.col(factor.cols() - 1).setZero();
}

/// Makes what follows from W and the multipliers fit them again, as a careful forger would.
void settle(const MarginProblem& problem, StoredSolution& forged) {
  const Index rows = problem.rows();
  if (std::ssize(forged.rhs) != rows) return;
  const Norm norm = Norm::parse(forged.norm);  // InputError if there is none of this name
  const Eigen::Map<Eigen::VectorXd> b(forged.rhs.data(), rows);
  Eigen::Map<Eigen::VectorXd> dual(forged.dual.data(), rows);
  if (forged.has_factors && forged.status != "infeasible") forged.W = forged.K * forged.Q.transpose();
  if (forged.status == "infeasible") {
    forged.W.setZero();
    dual /= b.dot(dual);
    forged.objective = forged.dual_objective = std::numeric_limits<double>::quiet_NaN();
  } else if (forged.is_soft()) {
    forged.objective = forged.W.squaredNorm() / 2;
    for (std::size_t i = 0; i < forged.xi.size(); ++i) forged.objective += forged.penalty[i] * forged.xi[i];
    forged.dual_objective = b.dot(dual) - problem.weigh(dual).squaredNorm() / 2;
  } else {
    forged.objective = norm.of(forged.W);
    dual /= norm.dual_of(problem.weigh(dual));
    forged.dual_objective = b.dot(dual);
  }
  Eigen::Map<Eigen::VectorXd>(forged.slack.data(), rows) = problem.values(forged.W) - b;
}

void forge_once(const MarginProblem& problem, StoredSolution& forged, Choices& choices) {
  const std::size_t operation = choices.below(18);
  const std::span<double> numbers = numbers_of(forged, choices.below(256));
  const std::size_t at = choices.below(numbers.size()), other = choices.below(numbers.size());
  const std::size_t row = choices.below(forged.row_query.size());
  if (operation <= 4) {
    if (!numbers.empty()) numbers[at] = changed(numbers[at], numbers[other], choices);
  } else if (operation == 5) {  // all by one factor
    const double factor = changed(1, 2, choices);
    for (double& number : numbers) number *= factor;
  } else if (operation == 6) {  // what one gives, another takes
    const double size = numbers.empty() ? 0 : changed(numbers[at], 1e22, choices);
    if (!numbers.empty()) numbers[at] += size, numbers[other] -= size;
  } else if (operation == 7 && !forged.row_query.empty()) {
    std::vector<Index>* const lists[] = {&forged.row_query, &forged.row_keep, &forged.row_drop};
    std::vector<Index>& list = *lists[choices.below(3)];
    list[row % list.size()] = static_cast<Index>(choices.below(6)) - 1;
  } else if (operation == 8 && !forged.row_equal.empty()) {
    forged.row_equal[row] = !forged.row_equal[row];
  } else if (operation == 9 && !forged.rhs.empty()) {  // a row less, or the last twice
    const std::size_t rows = choices.below(2) == 0 ? forged.rhs.size() - 1 : forged.rhs.size() + 1;
    for (auto* list : {&forged.row_query, &forged.row_keep, &forged.row_drop}) list->resize(rows, list->back());
    for (auto* list : {&forged.rhs, &forged.slack, &forged.dual}) list->resize(rows, list->back());
    forged.row_equal.resize(rows);
  } else if (operation == 10) {
    widen(forged.K);
    widen(forged.Q);
  } else if (operation == 11) {
    constexpr std::array kWords{"optimal", "infeasible", "limit", "stalled"};
    forged.status = kWords[choices.below(kWords.size())];
  } else if (operation == 12) {
    constexpr std::array kNorms{"fro", "nuc", "spec", "max", "l1", "lp:3", "schatten:4", "lp:0.5"};
    forged.norm = kNorms[choices.below(kNorms.size())];
  } else if (operation == 13 && !forged.relax.empty()) {  // rows that the solver was not asked for
    const std::size_t query = choices.below(forged.relax.size());
    forged.relax[query] = !forged.relax[query];
  } else if (operation > 13) {
    settle(problem, forged);
  }
}

/// Whether the answer is still one to the question that the true one answers.
bool same_question(const StoredSolution& a, const StoredSolution& b) {
  return a.relax == b.relax && a.penalty == b.penalty && a.norm == b.norm;
}

void judge(const Case& from, const StoredSolution& forged) {
  const Verification verdict = verify(from.problem.task(), forged);
  if (!verdict.valid || !same_question(forged, from.truth)) return;
  const bool feasible = from.truth.status == "optimal";
  fuzz::require(forged.status == "infeasible" ? !feasible : feasible || forged.status != "optimal",
                "a W exists, or none does, and verify accepts the contrary");
  if (!feasible || forged.status == "infeasible") return;
  if (std::isfinite(verdict.dual_objective))
    fuzz::require(verdict.dual_objective <= from.proof.objective * (1 + kSlack), "a bound is above the optimum");
  if (forged.status == "optimal" || std::isfinite(verdict.gap))
    fuzz::require(verdict.objective >= from.proof.dual_objective * (1 - kSlack), "an objective is below the optimum");
  if (forged.status == "optimal")
    fuzz::require(verdict.objective <= from.proof.objective * (1 + kSlack), "an optimum is not the least");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Case> all = cases();
  Choices choices({data, size});
  const Case& from = all[choices.below(all.size())];
  StoredSolution forged = from.truth;
  fuzz::refuse_or([&] {
    do forge_once(from.problem, forged, choices);
    while (choices.more());
    judge(from, forged);
  });
  return 0;
}
