#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attsvm/train.h"

namespace attsvm {

/// A finished run as its file holds it.
struct StoredRun {
  std::string settings;            ///< in words, as words_of() has them; empty where the file has none
  RowMatrix W;                     ///< (d,dz), the last point
  Eigen::VectorXd v;               ///< the trained head; empty unless the head was trained
  std::vector<Index> record_step;  ///< (r)
  std::vector<ConstRows> record;   ///< (r) points W, views of `numbers`
  // (r) as in Record; empty where the file has none.
  std::vector<double> record_loss, record_log_gradient;
  Array numbers;                          ///< keeps the points alive
  std::optional<Index> task_fingerprint;  ///< of the task that was trained; none where the file does not say
};

/// Reads W and, where they are there, settings, v, task_fingerprint and the record_ arrays named above. InputError
/// names file and array.
StoredRun load_run(const std::string& path, Threads& threads);

/// Tells tasks apart: the CRC-32 of what their arrays hold, all but `select`, which training does not read. Number
/// types and layouts of the file do not matter.
Index fingerprint_of(const AttentionTask& task);

/// InputError unless the run can be one of this task: W has its sizes, and a fingerprint, if there is one, is its own.
void require_run_of(const AttentionTask& task, const StoredRun& run);

/// The task with another linear head: what a run that trained its head is judged by.
AttentionTask with_head(const AttentionTask& task, const Eigen::VectorXd& v);

}  // namespace attsvm
