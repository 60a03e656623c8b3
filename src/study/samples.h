#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/wilson.h"
#include "study/study.h"

namespace attsvm::internal {

// What the runs of a cell say together.

/// Mean and spread of a sample; NaN entries are left out.
struct Sample {
  Index count = 0;
  double mean = 0;       ///< NaN if empty
  double sd = 0;         ///< with count − 1; NaN below two
  double error() const;  ///< standard error of the mean
};

Sample sample_of(std::span<const double> numbers);

/// The numbers under a name; results without it are left out.
Sample sample_of(const std::vector<const Json*>& results, const std::string& name);

/// "0.996 ± 0.002 (standard error 0.0002, 100 runs)"
std::string words_of(const Sample& sample);

/// Converts numbers to JSON and back; numbers that are not finite become null, and null becomes NaN.
Json json_list(const std::vector<double>& numbers);
std::vector<double> numbers_list(const Json& list);

/// The pointwise mean over runs of equally long lists, with ± one standard deviation.
struct MeanCurve {
  std::vector<double> mean, low, high;
};
MeanCurve mean_curve(const std::vector<const Json*>& results, const std::string& name);

/// Adds one row per step of a run. A column is what the result has under its name, a number or one number per step, and
/// otherwise a setting.
void add_steps(const Json& settings, const Json& result, Table& table);

/// A number of sequences, and of tokens per sequence.
struct Size {
  Index n, T;
};

/// "n=5 T=10 d=4"
std::string cell_name(const Size& size, Index d);

/// The rows of one size, in a table whose first three columns are n, T and d.
std::vector<const Json*> rows_of(const Table& table, const Size& size);

}  // namespace attsvm::internal
