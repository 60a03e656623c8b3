#pragma once

#include "train/gradient.h"
#include "train/parameters.h"

namespace attsvm::internal {

/// The steps of the optimizer that TrainSettings name.
class Update {
 public:
  Update(const TrainSettings& settings, const Parameters& point);

  /// Writes the arrays after step number `step` (from 0) to `next`, which has the shapes of `now`.
  void apply(const Parameters& now, const std::vector<const ScaledMatrix*>& gradients, double log_excess, Index step,
             Parameters& next);

  /// Memory of the optimizer: two moments per array for Adam, else empty.
  std::vector<RowMatrix>& memory() { return memory_; }
  const std::vector<RowMatrix>& memory() const { return memory_; }

 private:
  /// The factor by which the direction of gradient k is multiplied.
  double factor(const std::vector<const ScaledMatrix*>& gradients, std::size_t k, double log_excess, double step) const;
  double epsilon(std::size_t k) const;
  void adam(const RowMatrix& now, const ScaledMatrix& gradient, std::size_t k, double step_size, Index step,
            RowMatrix& next);

  TrainSettings settings_;
  bool joint_;
  std::size_t arrays_;
  std::vector<RowMatrix> memory_;
};

/// The step size of step number `step` (from 0).
double scheduled_step(const TrainSettings& settings, Index step);

/// ‖·‖_F without overflow or underflow of squares.
double safe_norm(const RowMatrix& matrix);

}  // namespace attsvm::internal
