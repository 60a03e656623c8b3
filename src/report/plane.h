#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "attsvm/task.h"

namespace attsvm::internal {

using Json = nlohmann::ordered_json;

/// Most numbers of one kind (coordinates of tokens, points of paths, weights) that a page holds, so that browsers open
/// it quickly.
inline constexpr Index kPageNumbers = 500'000;

/// Directions of key space that a reader can put on the axes of the plane: where W z_i points (each query's own; tasks
/// with one query per sequence), principal components of the keys, and coordinates.
class Axes {
 public:
  /// `W` may be null: no axis follows it. InputError if a coordinate is not one of the keys'. Empty: the first ones.
  Axes(const AttentionTask& task, const RowMatrix* W, std::span<const Index> coordinates);

  Index count() const { return static_cast<Index>(directions_.size()); }
  Json json() const;
  /// The tokens of as many sequences as fit: where each begins, and their coordinates along every axis.
  Json tokens_json(const AttentionTask& task) const;
  Index shown_sequences() const { return shown_; }
  /// The coordinate along an axis; `query` matters only where every query has its own axis.
  double along(Index axis, Index query, const double* x) const;

 private:
  void follow(const AttentionTask& task, const RowMatrix& W);
  void add_components(const AttentionTask& task);

  struct Direction {
    Index coordinate = -1;        // −1: none
    Eigen::VectorXd component{};  // (d), of length 1; empty: none
    double share = 0;             // of the variance
    RowMatrix of_query{};         // (q,d), of length 1, or 0 where W z = 0; empty: none
  };
  std::vector<Direction> directions_;
  Index shown_ = 0;
};

/// W z_i for the first `queries` queries: length, and along every axis the direction of length 1 (null where W z_i =
/// 0).
Json directions_json(const AttentionTask& task, const Axes& axes, const Eigen::Ref<const RowMatrix>& W, Index queries);

}  // namespace attsvm::internal
