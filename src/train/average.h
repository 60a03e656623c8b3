#pragma once

#include "train/gradient.h"
#include "train/wide_numbers.h"

namespace attsvm::internal {

/// The exponential average m of gradients, entry by entry: each entry has its own exponent, because its gradients may
/// be e^{-1000} times those of another entry, or of its own past.
class Average {
 public:
  /// In plain arithmetic blocks stay 0, and numbers underflow as usual.
  Average(Index rows, Index cols, Arithmetic arithmetic);

  /// Writes b1·m + (1−b1)·g to `mixed`, then sets m ← b2·m + (1−b2)·g. Entries that underflow beside the largest one
  /// keep their sign: they become the smallest double.
  void add(const ScaledMatrix& g, double b1, double b2, ScaledMatrix& mixed);

  bool is_zero() const { return (m_.array() == 0).all(); }
  /// Calls use(array) for the arrays that the rest of a run depends on.
  template <class Self, class Use>
  static void for_each_array(Self& self, Use&& use) {
    use(self.m_);
    use(self.block_);
  }

 private:
  bool exact_;
  RowMatrix m_, block_;
  RowMatrix mixed_block_;  // scratch
};

/// The moments of Adam, entry by entry: the average m of the gradients and the average s of their squares.
class AdamMoments {
 public:
  AdamMoments(Index rows, Index cols, Arithmetic arithmetic);

  /// Takes the gradient in, then writes the quotient of the corrected moments, m̂/(√ŝ + ε), to `out`; 0/0 is 0. `step`
  /// counts from 0.
  void add(const ScaledMatrix& g, const std::array<double, 2>& betas, double epsilon, Index step, RowMatrix& out);

  bool is_zero() const { return (m_.array() == 0).all() && (s_.array() == 0).all(); }
  /// Calls use(array) for the arrays that the rest of a run depends on.
  template <class Self, class Use>
  static void for_each_array(Self& self, Use&& use) {
    use(self.m_);
    use(self.s_);
    use(self.block_);
  }

 private:
  bool exact_;
  RowMatrix m_, s_, block_;  // m is in units of 2^{512·block}, s in units of their square
};

}  // namespace attsvm::internal
