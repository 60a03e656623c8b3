#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "attsvm/margin.h"
#include "attsvm/train.h"
#include "study/study.h"

namespace attsvm::internal {

// Tools for studies that train.

inline constexpr std::array kPromptStarts{1.0, 0.5, 0.0, -0.5, -1.0, -1.5};  ///< one coordinate of a prompt
inline constexpr std::array kMeasures{"equivalence", "gen", "single"};       ///< solutions that W is compared with
inline constexpr double kKept = 1e-3;  ///< softmax weight above which a token counts as kept

/// Converts the settings of a training run to the JSON of a cell, and back. Seed, instance and record are not part of
/// them.
Json json_of(const TrainSettings& settings);
TrainSettings training_of(const Json& settings);

/// Steps at which curves are drawn: 0, 1, 2, 3, 5, 7, 10, 15, …, and the last.
std::vector<Index> curve_steps(Index steps);
/// Steps at which paths are drawn: all up to 60, then every tenth, and the last.
std::vector<Index> path_steps(Index steps);

/// Calls work(k, alone) for k = 0 … count−1 on all threads; `alone` is a single-threaded Threads for the work itself.
void for_each_alone(std::size_t count, Threads& threads, const std::function<void(std::size_t, Threads&)>& work);

/// Trains instances `first` and on with the given settings, and makes a row of each task and its run.
using Judge = std::function<StudyRow(const AttentionTask&, const TrainedRun&, Threads& alone)>;
std::vector<StudyRow> train_and_judge(const std::vector<AttentionTask>& tasks, TrainSettings training,
                                      std::uint64_t seed, std::uint32_t first, Threads& threads, const Judge& judge);

/// Solves, and checks the solution by verify(); `verified` becomes false if it is not valid.
MarginSolution solve_verified(const MarginProblem& problem, const Norm& norm, MarginSolver& solver, bool& verified);

/// Converts numbers to JSON and back; numbers that are not finite become null, and null becomes NaN.
Json json_list(const std::vector<double>& numbers);
std::vector<double> numbers_list(const Json& list);

/// Coordinate `row` of W at every record.
std::vector<double> coordinate(const TrainedRun& run, Index row);
std::vector<double> steps_of(const TrainedRun& run);

/// The pointwise mean over runs of equally long lists, with ± one standard deviation.
struct MeanCurve {
  std::vector<double> mean, low, high;
};
MeanCurve mean_curve(const std::vector<const Json*>& results, const std::string& name);

/// A line from the origin in the direction (x, y).
Curve ray(const std::string& label, int style, double x, double y, double length);

/// The panel of a path in the plane: both axes from −reach to reach.
Panel plane(const std::string& title, double reach);

/// The names of the two arithmetics in figures and tables.
std::string arithmetic_words(const std::string& name);

}  // namespace attsvm::internal
