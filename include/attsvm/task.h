#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/array.h"

namespace attsvm {

/// The kinds of head h. x is an attended value: a vector of size dv.
enum class HeadKind : std::uint8_t {
  none,       ///< the task has no head: no scores, no training
  linear,     ///< h(x) = vᵀx
  hidden,     ///< h(x) = vᵀ relu(Bᵀx)
  quadratic,  ///< h(x) = vᵀx − λ‖x‖²
};

std::string_view name_of(HeadKind kind);  ///< the name that files, JSON and messages use

/// The function h, which maps the attended value x to the output of a query.
struct Head {
  HeadKind kind = HeadKind::none;  ///< which formula it has
  Eigen::VectorXd v{};             ///< (dv); hidden: (h), the output weights of the h hidden units
  Eigen::MatrixXd B{};             ///< (dv,h), the weights of the hidden units; hidden only
  double lambda = 0;               ///< λ; quadratic only

  /// h(x).
  double value(const Eigen::Ref<const Eigen::VectorXd>& x) const;
  /// ∇h(x). The slope of relu at 0 is taken as 0, as in deep-learning frameworks.
  Eigen::VectorXd gradient(const Eigen::Ref<const Eigen::VectorXd>& x) const;
};

/// The tokens of its sequence that each query sees: indices within the sequence, ascending, at least one per query.
class Visibility {
 public:
  /// Of queries whose sequences have at most `longest` tokens; add() tells of one query after the other.
  explicit Visibility(Index longest = 0);
  /// The next query sees `count` tokens from `first` on.
  void add(Index first, Index count);
  /// The next query sees these tokens, in ascending order.
  void add(std::span<const Index> tokens);
  /// The next query sees the same tokens of the same sequence as an earlier one.
  void add_as(Index query);

  Index queries() const { return static_cast<Index>(begin_.size()); }  ///< how many
  Index longest() const { return longest_; }                           ///< T, the length of the longest sequence
  Index total() const { return total_; }                               ///< tokens seen, added up over all queries
  /// The tokens that the query sees; a view of this object.
  std::span<const Index> tokens(Index query) const {
    return std::span(tokens_).subspan(at(begin_, query), at(count_, query));
  }
  bool sees(Index query, Index token) const;  ///< whether the query sees the token
  /// Whether the tokens have gaps, so that no range of the sequence holds just them.
  bool scattered(Index query) const { return begin_[static_cast<std::size_t>(query)] >= longest_; }
  /// Of a query with gaps: where its tokens are among those of all such queries, lists shared by add_as() counted once.
  Index packed(Index query) const { return begin_[static_cast<std::size_t>(query)] - longest_; }
  Index packed() const { return static_cast<Index>(tokens_.size()) - longest_; }  ///< how many those are

 private:
  static std::size_t at(const std::vector<Index>& list, Index k) {
    return static_cast<std::size_t>(list[static_cast<std::size_t>(k)]);
  }

  Index longest_, total_ = 0;
  std::vector<Index> tokens_;         // 0 … longest − 1, of which ranges are views, then the lists with gaps
  std::vector<Index> begin_, count_;  // (q): query i sees tokens_[begin_[i]] … tokens_[begin_[i] + count_[i] − 1]
};

/// The tokens that each query keeps: indices within its sequence, ascending, at least one per query.
class Selection {
 public:
  /// One token per query.
  static Selection single(std::span<const Index> tokens);
  /// One set of tokens per query, each in any order.
  static Selection sets(const std::vector<std::vector<Index>>& tokens);
  /// A selection as files hold it: (q) integers, or a (q,longest) bool mask. `visible` says which tokens
  /// each query sees. InputError, with `name` and the place in its message, if a query does not see a token it keeps,
  /// or if a row of the mask keeps nothing.
  static Selection from_array(const Array& array, const Visibility& visible, Index longest, std::string_view name);

  Index queries() const { return static_cast<Index>(begin_.size()) - 1; }  ///< how many
  std::span<const Index> kept(Index query) const;                          ///< ascending; a view of this selection
  Index first(Index query) const { return kept(query).front(); }           ///< the smallest kept token
  std::vector<Index> firsts() const;                                       ///< first() of every query
  bool keeps(Index query, Index token) const;                              ///< whether the query keeps the token
  bool is_single() const { return static_cast<Index>(tokens_.size()) == queries(); }  ///< one token per query

  Array mask(Index longest) const;  ///< (q,longest) bool

  friend bool operator==(const Selection&, const Selection&) = default;  ///< whether they keep the same tokens

 private:
  void append(std::vector<Index> tokens);

  std::vector<Index> begin_{0};  // (q+1): query i keeps tokens_[begin_[i]] … tokens_[begin_[i+1] − 1]
  std::vector<Index> tokens_;
};

/// The arrays that make a task, with the names that task files use. All but `tokens` may be left out; a next-token task
/// has the last four and `offsets` instead, of which only `vocabulary` may be left out. docs/formats.md describes each.
struct TaskArrays {
  Array tokens{};          ///< (n,T,dv), or (N,dv) with offsets: the values, and also the keys if `keys` is left out
  Array offsets{};         ///< (n+1): sequence s is rows offsets[s] … offsets[s+1]−1
  Array keys{};            ///< shape of tokens but for the last size, d
  Array queries{};         ///< (q,dz): cross attention
  Array query_token{};     ///< (q): self attention, z_i is the key of this token of the sequence
  Array sequence{};        ///< (q): the sequence that each query reads; default 0 … n−1
  Array visible{};         ///< (q): how many leading tokens each query sees, or (q,T) bool: which ones; default all
  Array bias{};            ///< (q,T): b_i, added to the logits; default 0. Nothing reads those of tokens not seen
  Array labels{};          ///< (q): ±1; default +1
  Array head{};            ///< v: (dv), or (h) with head_hidden
  Array head_hidden{};     ///< B: (dv,h)
  Array head_quadratic{};  ///< λ: ()
  Array select{};          ///< (q): one token per query, or (q,T) bool: the tokens that each query keeps
  Array ids{};             ///< (N): next-token tasks, the row of `embeddings` that each token is
  Array embeddings{};      ///< (K,d): the vector of each token of the vocabulary
  Array next{};            ///< (n): the id that each sequence is to attend to; it occurs in the sequence
  Array vocabulary{};      ///< (K) texts: what messages call the tokens; default "#0", "#1", …
};

/// Where query vectors come from: a constant 1, data of their own, or tokens of the sequence. Next-token tasks have one
/// query per sequence, its last token, and a token to attend to instead of a head.
enum class AttentionKind : std::uint8_t { prompt, cross, self, next_token };

std::string_view name_of(AttentionKind kind);  ///< the name that files, JSON and messages use

/// Sequences of tokens, and queries that each read one sequence with the logits a_i = X_i W z_i + b_i.
///
/// One class holds prompt, cross, self and causal attention and next-token prediction; they differ only in the arrays
/// given. Real arrays that are
/// aligned f64 in C order are used without a copy; their memory must outlive the task unless the Array owns it. A task
/// never changes, and copies of a task share its memory: to copy one costs no more than to copy a pointer.
class AttentionTask {
 public:
  /// Checks all arrays. InputError names the array, the index, the value and the rule.
  explicit AttentionTask(TaskArrays arrays);
  AttentionTask(const AttentionTask&) = default;             ///< shares; there is no move, so no task is ever empty
  AttentionTask& operator=(const AttentionTask&) = default;  ///< the same

  Index sequences() const { return static_cast<Index>(contents_->offsets_.size()) - 1; }  ///< n
  Index tokens() const { return contents_->offsets_.back(); }            ///< N, in all sequences together
  Index queries() const { return contents_->queries(); }                 ///< q
  Index longest() const { return contents_->longest_; }                  ///< T, the length of the longest sequence
  Index key_size() const { return contents_->keys().shape.back(); }      ///< d
  Index value_size() const { return contents_->values().shape.back(); }  ///< dv
  Index query_size() const { return contents_->query_size_; }            ///< dz

  /// Where the sequence begins among all N tokens.
  Index offset(Index sequence) const { return contents_->offsets_[static_cast<std::size_t>(sequence)]; }
  /// How many tokens the sequence has.
  Index length(Index sequence) const { return offset(sequence + 1) - offset(sequence); }
  ConstRows keys(Index sequence) const;    ///< X, (length, d); std::logic_error for next-token tasks
  ConstRows values(Index sequence) const;  ///< V, (length, dv); the same

  /// The sequence that the query reads.
  Index sequence(Index query) const {
    return next_token() ? query : contents_->sequence_[static_cast<std::size_t>(query)];
  }
  /// Which tokens each query sees; empty for next-token tasks, whose queries see all.
  const Visibility& visible() const { return contents_->visible_; }
  /// How many tokens of its sequence the query sees.
  Index visible(Index query) const { return next_token() ? length(query) : static_cast<Index>(seen(query).size()); }
  /// The tokens that the query sees: indices within its sequence, ascending; a view of the task. This and the next
  /// four are not for next-token tasks.
  std::span<const Index> seen(Index query) const { return contents_->visible_.tokens(query); }
  /// X_i, (visible, d): the keys of the tokens that the query sees, row k that of seen(query)[k]. A view of the keys,
  /// or, if the tokens have gaps, of a copy that the task made of them.
  ConstRows seen_keys(Index query) const;
  ConstRows seen_values(Index query) const;  ///< V_i, (visible, dv): the same of the values
  /// Where the first row of seen_keys is among the N tokens followed by the rows of that copy; its other rows follow.
  Index seen_row(Index query) const;
  std::span<const Index> copied() const { return contents_->copied_; }  ///< which of the N tokens each row copies
  ConstVector query(Index query) const;                                 ///< z_i, (dz)
  bool biased() const { return contents_->arrays_.bias.given(); }       ///< logits have fixed parts b_i
  /// b_i, (visible): entry k is of token seen(query)[k]; null if the task has none. A view of the task.
  const double* bias(Index query) const {
    return biased() ? contents_->bias_.data() + contents_->first_bias_[static_cast<std::size_t>(query)] : nullptr;
  }
  /// y_i, 1 or −1.
  double label(Index query) const {
    return contents_->labels_.empty() ? 1.0 : contents_->labels_[static_cast<std::size_t>(query)];
  }
  const Head& head() const { return contents_->head_; }                          ///< the function h
  const std::optional<Selection>& select() const { return contents_->select_; }  ///< the task's own selection, if given

  AttentionKind kind() const { return contents_->kind_; }               ///< where the query vectors come from
  bool ragged() const { return contents_->arrays_.offsets.given(); }    ///< sequences were given with offsets
  bool causal() const;                                                  ///< some query does not see all of its sequence
  bool masked() const;                                                  ///< some query does not see the leading tokens
  bool keys_differ() const { return contents_->arrays_.keys.given(); }  ///< keys were given apart from the values

  /// Tokens are rows of one table. What follows is for such tasks only.
  bool next_token() const { return kind() == AttentionKind::next_token; }
  Index vocabulary_size() const { return contents_->arrays_.embeddings.shape[0]; }  ///< K
  ConstRows embeddings() const;                                                     ///< (K,d)
  std::span<const Index> ids(Index sequence) const;                                 ///< the tokens of the sequence
  Index last(Index query) const { return ids(query).back(); }                       ///< the token whose vector z is
  Index next(Index query) const;        ///< the token that the query is to attend to, all of its copies
  std::string word(Index token) const;  ///< its entry in the vocabulary, or "#17"

  /// The arrays that a file of this task holds: real numbers as f64, indices as i64.
  const TaskArrays& arrays() const { return contents_->arrays_; }

 private:
  struct Contents {
    explicit Contents(TaskArrays arrays);
    Index sequences() const { return static_cast<Index>(offsets_.size()) - 1; }
    Index queries() const {
      return kind_ == AttentionKind::next_token ? sequences() : static_cast<Index>(sequence_.size());
    }
    Index offset(Index s) const { return offsets_[static_cast<std::size_t>(s)]; }
    Index length(Index s) const { return offset(s + 1) - offset(s); }
    const Array& values() const { return arrays_.embeddings.given() ? arrays_.embeddings : arrays_.tokens; }
    const Array& keys() const { return arrays_.keys.given() ? arrays_.keys : values(); }
    void take_offsets(Index tokens);
    void take_next_tokens();
    void take_tokens();
    void take_queries();
    void take_visible();
    void copy_scattered();
    void take_bias();
    void take_labels();
    void take_head();

    TaskArrays arrays_;
    AttentionKind kind_ = AttentionKind::prompt;
    std::vector<Index> offsets_, sequence_;
    Visibility visible_;
    std::vector<Index> copied_;
    RowMatrix copied_keys_, copied_values_;  // the latter is empty where keys are the values
    std::vector<double> bias_;               // of the tokens that queries see, query by query
    std::vector<Index> first_bias_;          // (q): where each query's begin
    std::vector<double> labels_;
    Index longest_ = 0, query_size_ = 1;
    const double* query_base_ = nullptr;  // z_i = query_base_ + dz · query_row_[i]
    std::vector<Index> query_row_;
    Head head_;
    std::optional<Selection> select_;
    std::vector<std::string> words_;  // the vocabulary
  };

  std::shared_ptr<const Contents> contents_;
};

/// Scores of a query tie if they differ by at most this times its largest absolute score.
inline constexpr double kTieTolerance = 1e-12;

/// h(v_t) of all tokens of all sequences, (N). The score of token t for query i is γ_it = y_i h(v_t). InputError if the
/// task has no head, or if a value is not finite.
std::vector<double> head_values(const AttentionTask& task);

/// A query whose best score several tokens share.
struct Tie {
  Index query;                ///< the query
  std::vector<Index> tokens;  ///< ascending, at least two
};

/// The tokens of highest score.
struct OptimalTokens {
  Selection selection;    ///< opt_i of every query, the lowest index among ties
  std::vector<Tie> ties;  ///< in the order of queries
};

/// For every query, the visible token of highest score. InputError if the task has no head.
OptimalTokens optimal_tokens(const AttentionTask& task, double tie_tolerance = kTieTolerance);

/// A sufficient condition for a generic task to be separable for every selection: linearly independent queries, and as
/// many key coordinates as each query has other tokens. For prompt attention, where all queries are the same vector: as
/// many key coordinates as all queries have other tokens together. For a next-token task: linearly independent
/// embeddings. A task may be separable without it.
struct SeparabilityCondition {
  bool holds = false;         ///< whether the task meets it
  Index needed_key_size = 0;  ///< the least d for which the condition can hold
  Index query_rank = 0;  ///< rank of the query vectors, or of the embeddings; computed only if it can decide, else 0
  std::string reason;    ///< why the condition holds or does not, in words
};

/// Whether the task meets the condition.
SeparabilityCondition separability_condition(const AttentionTask& task);

}  // namespace attsvm
