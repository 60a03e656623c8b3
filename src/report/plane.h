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

/// The last token that the query sees, plus one. The page lists this many tokens of a query, hidden ones too.
inline Index reach_of(const AttentionTask& task, Index query) { return task.seen(query).back() + 1; }

/// Directions of key space that a reader can put on the axes of the plane: principal components of the keys and
/// coordinates, and before them two that every query has of its own: along W z, and across it, at right angles.
class Axes {
 public:
  /// The two directions of a query, of length 1; `along` is 0 where W z = 0.
  struct Frame {
    Eigen::VectorXd along, across;
  };

  /// `W` may be null: queries then have no axes of their own. InputError if a coordinate is not one of the keys'.
  /// Empty: the first ones.
  Axes(const AttentionTask& task, const RowMatrix* W, std::span<const Index> coordinates);

  Index count() const { return (own() ? 2 : 0) + static_cast<Index>(shared_.size()); }
  Json json() const;
  /// The tokens of as many sequences as fit: where each begins, their coordinates along the shared axes, and for as
  /// many queries as fit those of the tokens in its reach along its own axes, and their scores.
  Json tokens_json() const;
  Index shown_sequences() const { return shown_; }
  Frame frame(Index query) const;
  /// The coordinate of x along an axis, for the query of that frame.
  double along(Index axis, const Frame& frame, const double* x) const;

 private:
  void add_components();
  bool own() const { return W_.size() > 0; }

  struct Direction {
    Index coordinate = -1;        // −1: none
    Eigen::VectorXd component{};  // (d), of length 1; empty: none
    double share = 0;             // of the variance
  };
  const AttentionTask& task_;
  RowMatrix W_;                    // empty: none
  std::vector<Direction> shared_;  // components come first
  Index shown_ = 0;
};

/// W z_i for the first `queries` queries: length, and along every axis the direction of length 1 (null where W z_i =
/// 0).
Json directions_json(const AttentionTask& task, const Axes& axes, const Eigen::Ref<const RowMatrix>& W, Index queries);

}  // namespace attsvm::internal
