#pragma once

#include "margin/soft/soft_path.h"

namespace attsvm::internal {

/// Newton's method on the face of an approximate point: the rows that hold with equality and the queries whose
/// multipliers reach their limit are guessed, and the linear equations that they leave are solved to rounding. Wrong
/// guesses show as multipliers or slacks of the wrong sign and are corrected.
class SoftFace {
 public:
  /// `path` knows products of rows; both must outlive the face.
  SoftFace(const SoftRows& rows, const SoftPath& path) : rows_(rows), path_(path) {}

  /// Improves the point as far as rounding allows; it is no worse afterwards.
  void polish(SoftPoint& point);

 private:
  void guess(const SoftPoint& point);
  bool solve();
  bool correct();

  const SoftRows& rows_;
  const SoftPath& path_;
  std::vector<char> active_, full_;  // rows that hold with equality; groups whose limit is reached
  Eigen::VectorXd x_, y_;
};

}  // namespace attsvm::internal
