#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attsvm/selector.h"
#include "attsvm/train.h"
#include "base/packed.h"

namespace attsvm::internal {

/// A task whose queries ranks share: each has some of them, one after another, and rank 0 asks the others for what
/// their queries say. A task that one process has whole is the simple case of it. What follows gives the bytes of that
/// case for any number of ranks.
struct SharedTask {
  /// The whole task, which must outlive this.
  explicit SharedTask(const AttentionTask& whole)
      : part(&whole),
        queries(whole.queries()),
        longest(whole.longest()),
        weights(static_cast<std::uint64_t>(whole.next_token() ? whole.tokens() : whole.visible().total())) {}

  const AttentionTask* part;                ///< what this rank has
  Index first = 0;                          ///< number of its first query among all
  Index queries, longest;                   ///< q and T of the whole task
  std::uint64_t first_weight = 0, weights;  ///< attention weights of the queries before those of the part, and of all
  std::optional<Index> fingerprint{};       ///< of the whole task; if not given, that of the part
  Ask ask{};                                ///< empty: no other rank has queries
};

/// What a rank is to do, the first letter of a job; what it needs follows. An empty job asks for nothing.
enum class Job : char {
  passes = 'p',     ///< prepare for gradients: PassSettings
  gradient = 'g',   ///< GradientPass
  map = 'm',        ///< attention_map: W
  weights = 'w',    ///< mean_weight: W
  entropies = 'e',  ///< mean_entropy: W
  outcomes = 'o',   ///< hard_selection: head
};

// The functions of these names for tasks that ranks share. `last` is what attention_map() returned last.
AttentionMap attention_map(const SharedTask& task, const RowMatrix& W, Threads& threads);
double mean_weight(const SharedTask& task, const RowMatrix& W, const AttentionMap& last, Threads& threads);
double mean_entropy(const SharedTask& task, const RowMatrix& W, Threads& threads);
HardSelection hard_selection(const SharedTask& task, const Head& head, Loss loss, const AttentionMap& last);

/// How a rank other than 0 answers.
class TaskMember {
 public:
  /// Null: it has no queries, and its answers are empty. What `task` points to, and `threads`, must outlive this.
  TaskMember(const SharedTask* task, Threads& threads);
  ~TaskMember();
  std::string answer(const std::string& job);
  /// One answer of the last one and that of the ranks that follow.
  std::string merged(std::string own, std::string_view next) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline void pack(Packer& out, const Head& head) { out.put(head.kind).put(head.v).put(head.B).put(head.lambda); }
inline Head unpacked_head(Unpacker& in) {
  Head head;
  head.kind = in.get<HeadKind>();
  head.v = in.matrix<Eigen::VectorXd>();
  head.B = in.matrix<Eigen::MatrixXd>();
  head.lambda = in.get<double>();
  return head;
}

}  // namespace attsvm::internal
