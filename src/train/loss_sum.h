#pragma once

#include <cmath>
#include <vector>

#include "base/ordered_sum.h"
#include "base/packed.h"
#include "train/losses.h"
#include "train/query_pass.h"

namespace attsvm::internal {

/// Σ e^{term} = e^{top}·sum
struct LogSum {
  double top = kLogZero, sum = 0;

  void add(const LogSum& other);
  double mean(double count) const { return std::isinf(top) ? top : top + std::log(sum / count); }
};

/// What some queries add to loss and gradient.
struct LossSum {
  double loss = 0, best = 0;        ///< Σ ℓ(u), Σ ℓ(best)
  LogSum small_losses{}, excess{};  ///< Σ ℓ(u) where the mean may underflow, Σ (ℓ(u) − ℓ(best))
  double log_W = kLogZero, log_v = kLogZero;
  RowMatrix W{};        ///< Σ weight_i g_i z_iᵀ = e^{log_W}·W
  Eigen::VectorXd v{};  ///< the same for the head; empty if it is not trained

  void add(const LossSum& other);
  void put_into(Packer& out) const;
  static LossSum from(Unpacker& in);
};

/// Queries of a pass, one row each: what the pass through each found.
struct PassRows {
  std::span<const QueryGradient> queries;
  double* g;                   ///< g_i; multiplied by their weights when they are summed
  const double *Z, *features;  ///< z_i; ∂h/∂v, or null

  PassRows part(Index first, Index count, Index d, Index dz, Index width) const;
};

/// How the rows of a pass are summed.
struct LossSums {
  const PassSettings& settings;
  Index count;         ///< queries of the pass, on all ranks
  Index d, dz, width;  ///< width: of the features
  bool in_one;         ///< the pass is small: one thread, one product
  Threads& threads;

  /// The sum over the rows of one segment. `memory` is used for W.
  LossSum of(const PassRows& rows, RowMatrix memory = {}) const;
};

/// The segments of a pass as ranks hand them in, in their order: whole ones summed, the rows of those that lie on
/// several ranks as they are.
class LossSegments {
 public:
  explicit LossSegments(const LossSums& sums) : sums_(sums), segments_(sums.count) {}

  /// Rows first … of the pass, which follow those taken before. They are cut into segments, of which the first and the
  /// last may be incomplete.
  void take(Index first, PassRows rows, RowMatrix memory = {});
  /// Those of another rank.
  void take(std::string_view packed);
  /// Those of this rank, for rank 0.
  std::string packed();
  /// The sum of all rows, which all have been taken.
  LossSum total() { return whole_.total(); }

 private:
  struct Loose {
    Index first = 0;
    std::vector<QueryGradient> queries{};
    std::vector<double> g{}, Z{}, features{};
  };
  void take_loose(Index first, const PassRows& rows);

  const LossSums& sums_;
  Segments segments_;
  OrderedSum<LossSum> whole_{};
  std::vector<Loose> loose_{};
};

}  // namespace attsvm::internal
