#pragma once

#include <vector>

#include "attsvm/array.h"

namespace attsvm {

/// Which points of a run are kept: those after 0, 1, … steps.
struct RecordPlan {
  std::vector<Index> at{};  ///< numbers of steps, ascending; used if not empty
  Index every = 0;          ///< 0, every, 2·every, …; 0 with `at` empty: the first and the last point

  bool due(Index step, Index steps) const;
  /// The smallest number of steps ≥ `from` that is due, up to `steps`; −1: none.
  Index next(Index from, Index steps) const;
  Index count(Index steps) const;  ///< how many are due in all
};

/// A point of a run. Loss and gradient are over all queries, without dropout.
struct Record {
  Index step = 0;
  double loss = 0, log_loss = 0;  ///< as in LossGradient
  double norm = 0;                ///< ‖W‖_F
  double log_gradient = 0;        ///< log ‖∂L/∂W‖_F; −infinity: zero
  RowMatrix W;                    ///< (d,dz)
  Eigen::VectorXd v;              ///< joint training only, else empty
};

}  // namespace attsvm
