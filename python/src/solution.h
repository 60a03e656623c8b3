#pragma once

#include <string>
#include <vector>

#include "attsvm/margin.h"
#include "attsvm/stored.h"

namespace attsvm::python {

/// An answer with what its file holds, and what is known beside it.
struct Solution {
  StoredSolution stored;
  double gap = 0, violation = 0, residual = 0;
  Index support = 0, iterations = 0;
  bool rank_certified = false;
  double next_singular_value = 0, outside_mass = 0;  ///< as in RankCertificate
  std::string rank_words;
  std::string method = "file";
  std::vector<std::string> words;  ///< of a conflict
  bool warm_started = false, interrupted = false;
  std::vector<SolveProgress> history;
};

Solution to_solution(const MarginProblem& problem, const MarginSolution& found, double tolerance);

/// What a file says; gap, violation and support follow from it.
Solution from_file(StoredSolution stored);

}  // namespace attsvm::python
