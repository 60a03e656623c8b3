#pragma once

#include <span>
#include <vector>

#include "attsvm/generate.h"
#include "attsvm/margin.h"
#include "study/study.h"

namespace attsvm::internal {

// Drawing, solving and averaging, for all studies.

/// Instances first … first+count−1 of a recipe.
std::vector<AttentionTask> draw_tasks(const Recipe& recipe, std::uint64_t seed, std::uint32_t first,
                                      std::uint32_t count, Threads& threads);

/// Solutions, and whether verify() confirms each of them.
struct VerifiedSolutions {
  std::vector<MarginSolution> solutions;
  std::vector<std::uint8_t> valid;
};

VerifiedSolutions solve_verified(std::span<const MarginProblem> problems, const SolveSettings& settings,
                                 Threads& threads);

/// Mean and spread of a sample; NaN entries are left out.
struct Sample {
  Index count = 0;
  double mean = 0;       ///< NaN if empty
  double sd = 0;         ///< with count − 1; NaN below two
  double error() const;  ///< standard error of the mean
};

Sample sample_of(const std::vector<double>& numbers);

/// The numbers under a name, one per result; NaN where there is none.
std::vector<double> numbers_of(const std::vector<const Json*>& results, const std::string& name);

/// "0.996 ± 0.002 (standard error 0.0002, 100 runs)"
std::string words_of(const Sample& sample);

}  // namespace attsvm::internal
