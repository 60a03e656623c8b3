#pragma once

#include "train/parameters.h"

namespace attsvm {

/// One step of an optimizer: θ ↦ θ − …, as TrainSettings say it.
class Update {
 public:
  Update(const TrainSettings& settings, const Parameters& point);

  /// Writes the arrays after step number `step` (from 0) to `next`, which has the shapes of `now`.
  void apply(const Parameters& now, const std::vector<const ScaledMatrix*>& gradients, double log_excess, Index step,
             Parameters& next);

  /// Memory of the optimizer: Adam's two moments an array, else empty.
  std::vector<RowMatrix>& memory() { return memory_; }
  const std::vector<RowMatrix>& memory() const { return memory_; }

 private:
  /// What multiplies a gradient's direction.
  double factor(const std::vector<const ScaledMatrix*>& gradients, std::size_t k, double log_excess, double step) const;
  double epsilon(std::size_t k) const;
  void adam(const RowMatrix& now, const ScaledMatrix& gradient, std::size_t k, double step_size, Index step,
            RowMatrix& next);

  TrainSettings settings_;
  bool joint_;
  std::size_t arrays_;
  std::vector<RowMatrix> memory_;
};

/// How far step number `step` (from 0) goes.
double scheduled_step(const TrainSettings& settings, Index step);

/// ‖·‖_F, also where squares would overflow or underflow.
double safe_norm(const RowMatrix& matrix);

}  // namespace attsvm
