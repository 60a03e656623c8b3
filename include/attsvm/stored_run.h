#pragma once

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
  Array numbers;  ///< keeps the points alive
};

/// Reads W and, where they are there, settings, v and the record_ arrays named above. InputError names file and array.
StoredRun load_run(const std::string& path, Threads& threads);

/// The task with another linear head: what a run that trained its head is judged by.
AttentionTask with_head(const AttentionTask& task, const Eigen::VectorXd& v);

}  // namespace attsvm
