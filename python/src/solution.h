#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "attsvm/margin.h"

namespace attsvm::python {

namespace nb = nanobind;

/// A solution: the contents of its file, and what else is known about it.
struct Solution {
  StoredSolution stored;
  double gap = 0, violation = 0, residual = 0;
  Index support = 0, iterations = 0;
  bool rank_certified = false;
  std::optional<bool> unique{};
  double next_singular_value = 0, outside_mass = 0;  ///< as in RankCertificate
  std::string rank_words;
  std::string method = "file";
  std::vector<std::string> words;  ///< of a conflict
  bool warm_started = false, interrupted = false;
  std::vector<SolveProgress> history;
};

/// As Python's SolveProgress, and bars, take it.
nb::tuple state_of(const SolveProgress& progress);

Solution to_solution(const MarginProblem& problem, const MarginSolution& found, double tolerance);

/// From the contents of a file; gap, violation and support are computed from them.
Solution from_file(StoredSolution stored);

}  // namespace attsvm::python
