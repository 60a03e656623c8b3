#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "attsvm/train.h"
#include "study/samples.h"
#include "study/study.h"

namespace attsvm::internal {

// Tools for studies that train.

/// The published arithmetic first.
inline constexpr std::array kArithmetics{Arithmetic::plain, Arithmetic::exact};
inline constexpr std::array kPromptStarts{1.0, 0.5, 0.0, -0.5, -1.0, -1.5};  ///< one coordinate of a prompt
inline constexpr double kKept = 1e-3;  ///< softmax weight above which a token counts as kept

/// Columns of tables with one row per step.
inline const Column kArithmeticColumn{"arithmetic", "plain doubles, or exact directions"},
    kStepColumn{"step", "gradient steps taken"};

/// Converts the settings of a training run to the JSON of a cell, and back. Seed, instance and record are not part of
/// them.
Json json_of(const TrainSettings& settings);
TrainSettings training_of(const Json& settings);

/// The settings of a cell: its own, then those of its training.
Json cell_settings(Json own, const TrainSettings& training);

/// Random tasks of a cell's n, T and d.
Recipe recipe_of(const Json& settings);

/// Steps at which curves are drawn: 0, 1, 2, 3, 5, 7, 10, 15, …, and the last.
std::vector<Index> curve_steps(Index steps);
/// Steps at which paths are drawn: all up to 60, then every tenth, and the last.
std::vector<Index> path_steps(Index steps);

/// A cell's training, recorded at the steps of its curves or paths.
TrainSettings recorded(const Json& settings, std::vector<Index> (*steps)(Index));

/// Rows 0 … count−1, on all threads.
std::vector<StudyRow> make_rows(Index count, Threads& threads,
                                const std::function<StudyRow(std::size_t k, Threads& alone)>& make);

/// Draws tasks, trains each with the given settings, and makes a row of each task and its run.
using Judge = std::function<StudyRow(const AttentionTask&, const TrainedRun&, Threads& alone)>;
std::vector<StudyRow> train_and_judge(const Recipe& recipe, TrainSettings training, const Draws& draws,
                                      Threads& threads, const Judge& judge);
/// The same for tasks that are there already, one per draw.
std::vector<StudyRow> train_and_judge(const std::vector<AttentionTask>& tasks, TrainSettings training,
                                      const Draws& draws, Threads& threads, const Judge& judge);

/// A number of every record of a run.
std::vector<double> along(const TrainedRun& run, const std::function<double(const Record&)>& number);

std::vector<double> steps_of(const TrainedRun& run);

/// The correlation of every record's W with a direction.
std::vector<double> correlations(const TrainedRun& run, const RowMatrix& direction);

/// Adds the steps of a run's records, and the first two coordinates of the prompt: "step", "p1" and "p2".
void add_prompt_path(const TrainedRun& run, Json& result);

/// The first two coordinates of a prompt or head.
Json first_two(const RowMatrix& W);

}  // namespace attsvm::internal
