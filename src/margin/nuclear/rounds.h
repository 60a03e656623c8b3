#pragma once

#include "margin/nuclear/solver.h"

namespace attsvm::internal {

/// Solves a problem of more rows than a NuclearSolver should copy: for the `most` rows, about, that the Frobenius
/// answer meets with the least slack, and again with those that W then misses, until it misses none. Every row asks for
/// more than 0. The solver has the answer; returns the iterations of all rounds.
Index solve_in_rounds(NuclearSolver& solver, const MarginProblem& problem, const MarginSolution& frobenius,
                      double tolerance, Index most, Threads& threads,
                      const std::function<bool(const SolveProgress&)>& stop);

}  // namespace attsvm::internal
