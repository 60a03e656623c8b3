#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time_limit.h"
#include "ranks/portions.h"
#include "study/study.h"

namespace attsvm::internal {

/// Runs the cells of studies in portions, on all ranks, and commits every portion, until each cell has the accepted
/// runs asked for. Rank 0 has the runner; the others help_studies().
class StudyRunner {
 public:
  StudyRunner(RunStore& store, std::uint64_t seed, const StudyOptions& options, Threads& threads,
              Ranks& crew = ranks());
  ~StudyRunner();
  StudyRunner(const StudyRunner&) = delete;
  StudyRunner& operator=(const StudyRunner&) = delete;

  /// Announces a study's work, for the estimate of the time left and so that ranks without work in one study begin the
  /// next. Call it for every study, in the order of collect(), before the first collect().
  void announce(const Study& study);

  /// The rows that count, cell by cell; fewer than asked for if stopped early. `reused`: rows that the store had.
  std::vector<CellRows> collect(const Study& study, Index& reused);

  StudyStop stop() const { return stop_; }

 private:
  struct Work;

  std::optional<std::string> next_portion();
  void take(const std::string& portion, const std::string& result);
  void open(Work& work);
  bool should_stop();
  Index wanted(const StudyCell& cell) const;

  RunStore& store_;
  std::uint64_t seed_;
  const StudyOptions& options_;
  Ranks& crew_;
  std::vector<Work> work_;  // the cells of all studies, in order
  std::size_t now_ = 0;     // the first cell that is not complete
  StudyStop stop_ = StudyStop::finished;
  TimeLimit limit_{options_.time_limit};
  double cost_done_ = 0, working_since_ = -1;  // of the portions run here, for seconds per unit of cost
  Portions portions_;                          // last: its thread may still compute while the rest goes
};

/// Computes the portions of a runner of the same studies on another rank.
void help_studies(const std::vector<const Study*>& studies, std::uint64_t seed, Threads& threads, Ranks& crew);

}  // namespace attsvm::internal
