#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attsvm/train.h"

namespace attsvm {

struct PathSettings {
  Parametrization param = Parametrization::W;
  bool joint = false;  ///< the head's v is minimised over too, in a ball of its own; linear heads
  Index width = 0;     ///< columns of K and Q; 0: min(d,dz)
  Loss loss = Loss::logistic;
  std::vector<double> radii{1, 10, 100, 1000};  ///< ascending
  double head_radius = 1;                       ///< joint: ‖v‖ ≤ head_radius · radius
  Index starts = 8;                             ///< random points, of norm 4 at most, from which the path is followed
  std::uint64_t seed = 0;
  double tolerance = 1e-8;                                     ///< on the stationarity of each point
  std::function<bool(Index start, double radius)> progress{};  ///< called before every radius; true stops
  /// Looked at all the time; true stops. The point under way is kept as far as it came, and its stationarity says so.
  std::function<bool()> stop{};
};

/// The best minimiser found at one radius.
struct PathPoint {
  double radius = 0;
  double loss = 0, log_loss = 0;
  /// What minimisers are compared by: log(L − L*), which tells them apart where L is constant to rounding. The same as
  /// log_loss where L* is not known (the head is trained or not linear).
  double log_excess = 0;
  double norm = 0;       ///< ‖W‖_F; (K,Q): (‖K‖² + ‖Q‖²)/2, which is ‖W‖_* at a minimiser
  double head_norm = 0;  ///< ‖v‖, joint only
  /// First-order conditions. With the ball's edge in force: the length of the tangent part of g/‖g‖, the larger of the
  /// two balls'; inside: ‖g‖. (K,Q): at least σ₁(G)/μ − 1 (inside: σ₁(G)), which is 0 only where no other direction
  /// would lower the loss; not where the width is below min(d,dz) and all columns are in use.
  double stationarity = 0;
  bool inside = false;          ///< a finite minimiser that the ball does not hold back
  std::vector<Index> selected;  ///< argmax_t s_it
  Index minima = 0;             ///< how many different local minima the starts ended in (by selection)
  Index iterations = 0;
  RowMatrix W, K, Q;
  Eigen::VectorXd v;
  // Against the SVM of `selected`: Frobenius for W and p, nuclear for (K,Q); joint: the v-SVM, and the SVM in which
  // inputs that are no support vectors of v need less of a margin (docs/claims.md, joint-loose). NaN where there is
  // none.
  double correlation = 0, head_correlation = 0;
  Index relaxed = 0;  ///< how many inputs need less
};

/// InputError unless there are radii, all above 0 and ascending.
void require_radii(const std::vector<double>& radii);

/// The regularization path: argmin L over ‖W‖_F ≤ R, over ‖K‖² + ‖Q‖² ≤ 2R, or over ‖p‖ ≤ R, for growing R. Every start
/// is followed from radius to radius, and the lowest loss is reported. InputError if the settings or the task do not
/// allow it.
std::vector<PathPoint> regularization_path(const AttentionTask& task, const PathSettings& settings, Threads& threads);

}  // namespace attsvm
