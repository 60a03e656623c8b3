#pragma once

#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attsvm/theory.h"
#include "attsvm/train.h"
#include "base/random.h"
#include "base/time_limit.h"
#include "theory/batch_numbers.h"
#include "theory/instances.h"

namespace attsvm::internal {

// Tools that the experiments of the claims share.

inline constexpr double kUnmeasured = std::numeric_limits<double>::infinity();

/// Accumulates the results of one experiment's tasks, in the order in which they were drawn.
class Tally {
 public:
  Tally(const Claim& claim, const ClaimSettings& settings);
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  Index wanted() const { return wanted_; }
  bool full() const { return result_.tasks == wanted_; }
  std::uint64_t seed() const { return settings_.seed; }

  /// Names all variables that batches change and that live longer than one: a test that was stopped goes on from what
  /// the last batch left in them. To be called before the first batch.
  template <class... Parts>
  void continues(Parts&... parts) {
    (numbers_.add(parts), ...);
  }

  /// Calls work(first, count) with consecutive draw numbers, a batch at a time, until enough tasks are counted, `limit`
  /// draws were taken (0: as many as tasks are wanted) or the settings' progress stops the experiment.
  void for_batches(Index limit, const std::function<void(Index first, Index count)>& work) {
    for_batches(limit, batch_, work);
  }
  /// The same with batches of one, for tasks that take long.
  void for_each_draw(const std::function<void(Index)>& work) {
    for_batches(0, 1, [&](Index first, Index) { work(first); });
  }

  /// internal::for_each_alone() for the tasks of a batch. A test that is told to stop gives the batch up between two of
  /// them. A time limit does not: then short ones would never come to an end.
  void for_each_alone(Index count, Threads& threads, const std::function<void(std::size_t k, Threads& alone)>& work);

  /// A larger measure is worse; kUnmeasured where a failed task has none. Tasks beyond those wanted are not counted.
  void add(const AttentionTask& task, bool held, double measure, std::string words,
           std::map<std::string, Array> extras = {});

  void figure(std::string label, double value) { result_.figures.push_back({std::move(label), value}); }
  /// `part` of `whole`; no figure where whole is 0.
  void share(std::string label, Index part, Index whole);
  /// Whether no batch is left to do; else the test will go on, and what is costly at its end can wait until then.
  bool ended() const { return result_.complete; }
  ClaimResult result() &&;

 private:
  void for_batches(Index limit, Index batch, const std::function<void(Index first, Index count)>& work);
  bool is_stopped() const;

  const ClaimSettings& settings_;
  TimeLimit limit_;
  Index wanted_, batch_;
  ClaimResult result_;
  double worst_failure_ = -kUnmeasured;
  BatchNumbers numbers_;
  bool failed_worse_ = false;  // in this batch
};

/// The mean of numbers added one by one; NaN where there are none.
class Mean {
 public:
  void add(double value);
  double value() const { return sum_ / static_cast<double>(count_); }
  Index count() const { return count_; }
  auto numbers() { return std::tie(sum_, count_); }

 private:
  double sum_ = 0;
  Index count_ = 0;
};

/// The largest cosine between a gradient and W^mm over many points, and where it occurs.
struct Slopes {
  double largest = -1;  ///< kUnmeasured where a gradient has no direction: it is zero, or not finite
  Index undecided = 0, points = 0;
  RowMatrix where;

  void add(double cosine, const RowMatrix& W);
};

double median(std::vector<double> values);  ///< NaN where there are none

/// Tasks whose keys are drawn by the recipe, while each input has one token of the highest score and all others share a
/// lower one: values are numbers apart from the keys, best token and scores are drawn.
std::vector<AttentionTask> draw_equal_scores(const Recipe& recipe, const Draws& draws);

/// (rows, cols) normals of Frobenius norm `size`.
RowMatrix random_matrix(const Random& random, Index rows, Index cols, double size);

/// The Att-SVM of one selection per task.
std::vector<MarginProblem> attention_problems(std::span<const AttentionTask> tasks,
                                              std::span<const std::vector<Index>> selected);

std::vector<std::vector<Index>> optimal_of(std::span<const AttentionTask> tasks);
std::vector<std::vector<Index>> selected_by(std::span<const AttentionTask> tasks, std::span<const TrainedRun> runs,
                                            Threads& threads);

/// 1 − correlation with a solution; kUnmeasured where there is none, or W is zero.
double distance(const RowMatrix& W, const MarginSolution& solution);

}  // namespace attsvm::internal
