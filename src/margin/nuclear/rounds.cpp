#include "margin/nuclear/rounds.h"

#include <algorithm>

#include "margin/rows/row_products.h"

namespace attsvm::internal {
namespace {

constexpr Index kMostRounds = 20;  // heads take one to three
constexpr double kMissed = 1e-10;  // relative, by how much W misses a row that has to join

/// Marks the rows of least slack, relative to what they ask for.
std::vector<std::uint8_t> nearest(const MarginProblem& problem, const Eigen::VectorXd& slack, Index most) {
  const Index rows = problem.rows();
  Eigen::VectorXd relative(rows);
  for (Index k = 0; k < rows; ++k) relative(k) = slack(k) / problem.rhs(k);
  Eigen::VectorXd sorted = relative;
  const Index last = std::min(most, rows) - 1;
  std::nth_element(sorted.data(), sorted.data() + last, sorted.data() + rows);
  std::vector<std::uint8_t> chosen(static_cast<std::size_t>(rows));
  for (Index k = 0; k < rows; ++k) chosen[static_cast<std::size_t>(k)] = relative(k) <= sorted(last) ? 1 : 0;
  return chosen;
}

}  // namespace

Index solve_in_rounds(NuclearSolver& solver, const MarginProblem& problem, const MarginSolution& frobenius,
                      double tolerance, Index most, Threads& threads,
                      const std::function<bool(const SolveProgress&)>& stop) {
  const Index rows = problem.rows();
  std::vector<std::uint8_t> chosen = nearest(problem, frobenius.slack, most);
  RowProducts products(problem, threads);
  IndexList list;
  RowMatrix K, Q;
  Eigen::VectorXd value(rows), dual;
  Index iterations = 0;
  for (Index round = 0; round < kMostRounds; ++round) {
    list.clear();
    for (Index k = 0; k < rows; ++k) {
      if (chosen[static_cast<std::size_t>(k)] != 0) list.push(k);
    }
    const auto outcome = solver.solve(problem, frobenius, tolerance, stop, &list);
    iterations += solver.iterations();
    if (outcome == NuclearSolver::Outcome::stopped) break;
    solver.write(K, Q, dual);
    const RowMatrix W = K * Q.transpose();
    products.values(Eigen::Map<const Eigen::VectorXd>(W.data(), W.size()), value);
    bool missed = false;
    for (Index k = 0; k < rows; ++k) {
      std::uint8_t& in = chosen[static_cast<std::size_t>(k)];
      if (in != 0 || !(value(k) < (1 - kMissed) * problem.rhs(k))) continue;
      missed = true;
      in = 1;
    }
    if (!missed) break;
  }
  return iterations;
}

}  // namespace attsvm::internal
