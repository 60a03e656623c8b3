#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "attsvm/array.h"
#include "attsvm/head.h"
#include "attsvm/selection.h"

namespace attsvm {

/// What a task is made from, under the names that task files use. All but `tokens` may be left out.
/// docs/formats.md says what each one means.
struct TaskArrays {
  Array tokens{};          ///< (n,T,d), or (N,d) with offsets: the values, and the keys unless those are given
  Array offsets{};         ///< (n+1): sequence s is rows offsets[s] … offsets[s+1]−1
  Array keys{};            ///< as tokens, last size may differ
  Array queries{};         ///< (q,dz): cross attention
  Array query_token{};     ///< (q): self attention, z_i is that token's key
  Array sequence{};        ///< (q): the sequence each query reads; default 0 … n−1
  Array visible{};         ///< (q): how many leading tokens the query sees; default all
  Array labels{};          ///< (q): ±1; default +1
  Array head{};            ///< (dv), or (h) with head_hidden
  Array head_hidden{};     ///< (dv,h)
  Array head_quadratic{};  ///< ()
  Array select{};          ///< (q) token, or (q,T) bool
};

struct TaskField {
  std::string_view name;
  Array TaskArrays::*member;
};

/// Every array of a task with its name, in the order in which files hold them.
std::span<const TaskField> task_fields();

enum class AttentionKind : std::uint8_t { prompt, cross, self };

std::string_view name_of(AttentionKind kind);

/// Sequences of tokens, and queries that each read one of them: logits a_i = X_i W z_i.
///
/// Prompt, cross, self and causal attention are four ways to fill it, not four code paths. Large arrays that are f64,
/// aligned and in C order are used where they lie; their memory must outlive the task unless the Array owns it.
/// A task does not change, and copies share their memory.
class AttentionTask {
 public:
  /// Checks everything; InputError names array, index, value and rule.
  explicit AttentionTask(TaskArrays arrays);

  Index sequences() const { return static_cast<Index>(offsets_.size()) - 1; }  ///< n
  Index tokens() const { return offsets_.back(); }                             ///< N, over all sequences
  Index queries() const { return static_cast<Index>(sequence_.size()); }       ///< q
  Index longest() const { return longest_; }                                   ///< T, the longest sequence
  Index key_size() const { return arrays_keys().shape.back(); }                ///< d
  Index value_size() const { return arrays_.tokens.shape.back(); }             ///< dv
  Index query_size() const { return query_size_; }                             ///< dz

  Index offset(Index sequence) const { return offsets_[static_cast<std::size_t>(sequence)]; }
  Index length(Index sequence) const { return offset(sequence + 1) - offset(sequence); }
  ConstRows keys(Index sequence) const;    ///< X, (length, d)
  ConstRows values(Index sequence) const;  ///< V, (length, dv)

  Index sequence(Index query) const { return sequence_[static_cast<std::size_t>(query)]; }
  Index visible(Index query) const { return visible_[static_cast<std::size_t>(query)]; }
  std::span<const Index> visible() const { return visible_; }
  ConstVector query(Index query) const;  ///< z_i, (dz)
  double label(Index query) const { return labels_.empty() ? 1.0 : labels_[static_cast<std::size_t>(query)]; }
  const Head& head() const { return head_; }
  const std::optional<Selection>& select() const { return select_; }

  AttentionKind kind() const { return kind_; }
  bool ragged() const { return arrays_.offsets.given(); }
  bool causal() const;  ///< some query does not see all of its sequence
  bool keys_differ() const { return arrays_.keys.given(); }

  /// What a file of this task holds: real arrays as f64, indices as i64.
  const TaskArrays& arrays() const { return arrays_; }

 private:
  const Array& arrays_keys() const { return arrays_.keys.given() ? arrays_.keys : arrays_.tokens; }
  void take_tokens();
  void take_queries();
  void take_labels();
  void take_head();

  TaskArrays arrays_;
  AttentionKind kind_ = AttentionKind::prompt;
  std::vector<Index> offsets_, sequence_, visible_;
  std::vector<double> labels_;
  Index longest_ = 0, query_size_ = 1;
  const double* query_base_ = nullptr;  // z_i = query_base_ + dz · query_row_[i]
  std::vector<Index> query_row_;
  Head head_;
  std::optional<Selection> select_;
};

}  // namespace attsvm
