#pragma once

#include "attsvm/audit.h"

namespace attsvm::internal {

/// What a query chooses: its best and second token, within its sequence.
struct Choice {
  Index query = 0, first = 0, second = 0;
  double gap = 0;     ///< between their logits
  double weight = 0;  ///< softmax of the first over what the view shows
};

/// The choices of one head, where the sinks may be hidden.
class HeadView {
 public:
  HeadView(const HeadSet& heads, Index head, bool hidden);

  const HeadSet& heads() const { return heads_; }
  bool hidden() const { return hidden_; }
  const RowMatrix& keys() const { return keys_; }        ///< (N,d)
  const RowMatrix& queries() const { return queries_; }  ///< (q,d)
  const std::vector<Choice>& choices() const {
    return choices_;
  }  ///< of the head itself, for queries that have a choice

  /// Tokens of its sequence that a query sees in this view.
  std::vector<Index> shown(Index query) const;
  /// The choice of a query with logits K W z; `Wz` is its W z. Empty: it has none.
  std::optional<Choice> choose(Index query, const Eigen::VectorXd& Wz) const;
  /// Those of `tokens` whose keys do not coincide with that of `first`, and `first`.
  std::vector<Index> distinct(Index query, std::vector<Index> tokens, Index first) const;

  /// Mean attention of the head on sinks, over queries that see one.
  double sink_weight() const;

 private:
  const HeadSet& heads_;
  Index head_;
  bool hidden_;
  RowMatrix keys_, queries_;
  double coincide_;  // keys whose coordinates all differ by at most this are the same
  std::vector<Choice> choices_;
};

/// Queries that a margin problem is made of and those that judge its rank, without the ones of smallest gap.
struct Split {
  std::vector<Index> fit;  ///< positions in HeadView::choices(), ascending: `queries`/(1 − drop) of them at most
  std::vector<Index>
      held_out;  ///< others: from every fourth sequence, or every fourth query if there are few sequences
};

Split split_of(const HeadView& view, const AuditSettings& settings);

/// The choices without those of smallest gap: a share `drop` of them and whatever exceeds `most`, in the order given.
std::vector<Choice> without_smallest(std::vector<Choice> choices, double drop, Index most);

/// A margin problem in head space, with the place of its tokens in the file.
struct HeadProblem {
  AttentionTask task;                      ///< its selection is the choices
  std::vector<Index> query;                ///< of the file, for each query of the task
  std::vector<std::vector<Index>> tokens;  ///< within the file's sequence, for each sequence of the task
};

HeadProblem head_problem(const HeadView& view, const std::vector<Choice>& choices);

}  // namespace attsvm::internal
