#pragma once

#include <string>
#include <vector>

#include "attsvm/train.h"

namespace attsvm {

/// A finished run as its file holds it.
struct StoredRun {
  RowMatrix W;                     ///< (d,dz), the last point
  Eigen::VectorXd v;               ///< the trained head; empty unless the head was trained
  std::vector<Index> record_step;  ///< (r)
  std::vector<ConstRows> record;   ///< (r) points W, views of `numbers`
  Array numbers;                   ///< keeps the points alive
};

/// Reads W and, where they are there, v, record_step and record_W. InputError names file and array.
StoredRun load_run(const std::string& path, Threads& threads);

/// The task with another linear head: what a run that trained its head is judged by.
AttentionTask with_head(const AttentionTask& task, const Eigen::VectorXd& v);

}  // namespace attsvm
