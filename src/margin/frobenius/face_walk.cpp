#include <algorithm>
#include <cmath>

#include "base/kernels/gram.h"
#include "base/limits.h"
#include "margin/frobenius/exact_solver.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

constexpr Index kMovesPerRow = 2;  // by hand: moves to other faces that are tried before the robust path

}  // namespace

/// Where block pivoting cycles: one row at a time. Multipliers ≥ 0 move to those of the face until one vanishes, and
/// its row leaves; at those of the face the worst row joins. No move lowers the dual objective. False: the rows of the
/// set depend on each other, or conflict, or rounding decides, or the moves are used up, or `stop` said so.
bool ExactSolver::walk_to_face(const std::function<bool()>& stop) {
  const Index unknowns = rows_.d() * rows_.dz();
  keep_largest(unknowns);
  Index leaving = -1, joining = -1;
  for (Index moves = kMovesPerRow * live_; moves > 0 && !stop(); --moves) {
    next_.clear();
    for (Index k = 0; k < live_; ++k) {
      if (k == leaving || (free_[k] == 0 && x_[k] < 0)) x_[k] = 0;
      if (free_[k] != 0 || x_[k] > 0 || k == joining) next_.push(k);
    }
    set_.swap(next_);
    const Index size = set_.size(), ld = pad4(size + 1);
    if (size > unknowns) return false;
    ++iterations_;
    for (Index j = 0; j < size; ++j) point_[j] = x_[set_[j]];
    factor_face();
    for (Index j = 0; j < size; ++j) {
      if (!std::isfinite(L_[j * (ld + 1)])) return false;
      step_[j] = set_x_[j] - point_[j];
    }
    leaving = joining = -1;
    double length = longest_step(1, leaving);
    if (leaving < 0) {
      double worst = value_by_gram();
      for (Index k = 0, member = 0; k < live_; ++k) {
        if (set_.meets(k, member) || rhs_[k] - value_[k] <= worst) continue;
        worst = rhs_[k] - value_[k];
        joining = k;
      }
      if (joining < 0) return refine_face() && judge(kMeet * weight_norm()) == 0;
      if (size < unknowns) continue;
      // The row is a combination of a full set: it joins as another leaves, at the same W.
      for (Index j = 0; j < size; ++j) {
        point_[j] = set_x_[j];
        step_[j] = -rows_.whole_gram()[joining * rows_.whole_ld() + set_[j]];
      }
      solve_again(L_.data(), ld, size, step_.data());
      length = longest_step(kInfinity, leaving);
      if (leaving < 0) return false;
      x_[joining] = length;
    }
    for (Index j = 0; j < size; ++j) x_[set_[j]] = point_[j] + length * step_[j];
  }
  return false;
}

/// How far point_ can go along step_, at most `length`; `leaving` becomes the row that stops it.
double ExactSolver::longest_step(double length, Index& leaving) const {
  for (Index j = 0; j < set_.size(); ++j) {
    if (free_[set_[j]] != 0 || step_[j] >= 0 || point_[j] >= -step_[j] * length) continue;
    length = point_[j] / -step_[j];
    leaving = set_[j];
  }
  return length;
}

/// Sets multipliers of inequalities to zero, all but the largest, so that at most `count` rows are left.
void ExactSolver::keep_largest(Index count) {
  Index held = 0;
  local_.grow(live_);
  for (Index k = 0; k < live_; ++k) {
    if (free_[k] != 0) --count;
    if (free_[k] == 0 && x_[k] > 0) local_[held++] = k;
  }
  count = std::max<Index>(count, 0);
  if (held <= count) return;
  std::nth_element(local_.data(), local_.data() + count, local_.data() + held,
                   [&](Index k, Index l) { return x_[k] > x_[l]; });
  for (Index j = count; j < held; ++j) x_[local_[j]] = 0;
}

}  // namespace attsvm::internal
