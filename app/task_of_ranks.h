#pragma once

#include <memory>
#include <optional>
#include <string>

#include "attsvm/attsvm.h"
#include "io/shards.h"
#include "margin/rows/row_sums.h"
#include "train/shared_task.h"

namespace attsvm::internal {

/// The task of a verb whose queries ranks share where that is possible: it is in shards, and too large for one rank to
/// take it as a small one. Else rank 0 has the whole task, and the others have nothing to do.
class TaskOfRanks {
 public:
  enum class Sharing : std::uint8_t {
    none,      ///< the verb cannot share this kind of task with its settings
    queries,   ///< any cut will do
    segments,  ///< every rank must have whole segments of ordered sums
  };
  TaskOfRanks(const std::string& path, Sharing sharing, Threads& threads);

  /// Rank 0: the whole task, or its own part. Another rank: its part; null if it has none.
  const SharedTask* part() const { return task_ ? &*task_ : nullptr; }
  const SharedTask& task() const { return *task_; }
  bool shared() const { return task_ && task_->ask; }
  /// For solves: the rows of the part, which has whole segments.
  SharedRows rows() const;

 private:
  std::optional<AttentionTask> part_;
  std::optional<SharedTask> task_;
};

}  // namespace attsvm::internal
