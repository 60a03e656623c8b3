#pragma once

#include <vector>

#include "base/time_limit.h"
#include "study/study.h"

namespace attsvm::internal {

/// Runs the cells of studies in batches and commits every batch, until each has the accepted runs asked for.
class StudyRunner {
 public:
  StudyRunner(RunStore& store, std::uint64_t seed, const StudyOptions& options, Threads& threads);

  /// Announces a study's work, for the estimate of the time left. Call it for every study before the first collect().
  void announce(const Study& study);

  /// The rows that count, cell by cell; fewer than asked for if stopped early. `reused`: rows that the store had.
  std::vector<CellRows> collect(const Study& study, Index& reused);

  StudyStop stop() const { return stop_; }

 private:
  void collect(const Study& study, CellRows& rows, Index& reused);
  bool should_stop(const Study& study, const CellRows& rows, Index wanted);
  Index wanted(const StudyCell& cell) const;

  RunStore& store_;
  std::uint64_t seed_;
  const StudyOptions& options_;
  Threads& threads_;
  StudyStop stop_ = StudyStop::finished;
  TimeLimit limit_{options_.time_limit};
  double cost_ahead_ = 0;                       // of the cells not yet begun
  double cost_done_ = 0, seconds_working_ = 0;  // of the batches run here, for seconds per unit of cost
};

}  // namespace attsvm::internal
