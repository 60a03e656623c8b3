#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/files.h"
#include "attsvm/margin.h"

namespace attsvm {

/// The arrays of a file of heads (docs/formats.md), under its names. All but `keys` and `queries` may be left out.
struct HeadArrays {
  Array keys{};        ///< (g,N,d): what the logits read of each token, after projection, bias, rotation
  Array queries{};     ///< (h,q,d): times the scale, so that the logits are keys · queries
  Array key_head{};    ///< (h): the keys that each head reads; default its own
  Array layer{};       ///< (h): default 0
  Array head{};        ///< (h): number within the layer; default 0 … h−1
  Array offsets{};     ///< (n+1): sequence s is tokens offsets[s] … offsets[s+1]−1; default one sequence
  Array sequence{};    ///< (q): the sequence that each query reads; default 0
  Array position{};    ///< (q): self attention, the query's own token within its sequence
  Array visible{};     ///< (q): how many leading tokens; or (q,T) or (h,q,T) bool: which tokens; default all
  Array text{};        ///< (N): the words of the tokens
  Array query_text{};  ///< (q): the words of the queries, in cross attention
  Array ids{};         ///< (N): equal for tokens that are the same word; default by text
  Array sink{};        ///< (N) bool: tokens that the second view hides; default the first of each sequence
  Array difference{};  ///< (h): largest difference between recomputed attention and the model's own
};

/// The keys and queries of the attention heads of a model on some text. All heads read the same tokens with the same
/// queries. Copies share their memory.
class HeadSet {
 public:
  /// Checks all arrays. InputError names the array, the index, the value and the rule.
  explicit HeadSet(HeadArrays arrays);

  Index heads() const { return static_cast<Index>(contents_->key_head.size()); }         ///< h
  Index tokens() const { return contents_->offsets.back(); }                             ///< N, in all sequences
  Index sequences() const { return static_cast<Index>(contents_->offsets.size()) - 1; }  ///< n
  Index queries() const { return static_cast<Index>(contents_->sequence.size()); }       ///< q
  Index size() const { return contents_->size; }                                         ///< d
  Index longest() const { return contents_->longest; }                                   ///< T
  bool self() const { return !contents_->position.empty(); }  ///< queries have tokens of their own
  bool any_sink() const;                                      ///< whether there is something to hide

  Index layer(Index head) const { return at(contents_->layer, head); }             ///< as the file has it
  Index number(Index head) const { return at(contents_->head, head); }             ///< within its layer
  double difference(Index head) const;                                             ///< NaN: not given
  RowMatrix keys(Index head) const;                                                ///< (N,d), a copy
  RowMatrix query_vectors(Index head) const;                                       ///< (q,d), a copy
  Index offset(Index sequence) const { return at(contents_->offsets, sequence); }  ///< its first token
  /// How many tokens it has.
  Index length(Index sequence) const { return offset(sequence + 1) - offset(sequence); }
  Index sequence(Index query) const { return at(contents_->sequence, query); }  ///< that the query reads
  Index position(Index query) const { return at(contents_->position, query); }  ///< within its sequence; self() only
  bool sees(Index head, Index query, Index token) const;  ///< `token` counts within the query's sequence
  /// `token` counts from the first of all; so below.
  bool sink(Index token) const { return contents_->sink[static_cast<std::size_t>(token)]; }
  Index word(Index token) const { return at(contents_->words, token); }              ///< equal for the same word
  Index query_word(Index query) const { return at(contents_->query_words, query); }  ///< −1: not known
  std::string text(Index token) const;                                               ///< "#17" if the file has no text
  std::string query_text(Index query) const;                                         ///< empty if it is not known

  const HeadArrays& arrays() const { return contents_->arrays; }  ///< as given

 private:
  static Index at(const std::vector<Index>& list, Index i) { return list[static_cast<std::size_t>(i)]; }
  struct Contents {
    explicit Contents(HeadArrays given);
    void take_sizes();
    void take_places();
    void take_visible();
    void take_words();

    HeadArrays arrays;
    Index size = 0, longest = 0;
    std::vector<Index> key_head, layer, head, offsets, sequence, position, prefix, words, query_words;
    std::vector<bool> sink;
    std::vector<std::string> text, query_text;
    std::vector<double> difference;
  };
  std::shared_ptr<const Contents> contents_;
};

/// Reads a file of heads. InputError names the file, the array, the place and the rule. Arrays whose names start with
/// x_ are not read; any other unknown name is an InputError.
HeadSet load_heads(const std::string& path, Threads& threads);

/// The arrays of a file of heads.
NamedArrays head_arrays(const HeadSet& heads);

/// How the weights of a model are read.
struct ModelReading {
  std::string config{};            ///< path of its config.json, which has the numbers of heads
  std::string prefix{};            ///< of the layers' names; empty: the only one there is
  std::optional<double> rotary{};  ///< base of rotary positions, 0 for none; default as the configuration says
  std::optional<bool> causal{};    ///< whether queries see earlier tokens only; default by the kind of model
};

/// The heads of a model from its weights (a safetensors file with the names of Hugging Face: BERT, ViT, GPT-2, LLaMA)
/// and from what the attention of each layer reads (an .npz file, docs/formats.md). InputError names the file, the
/// tensor or array and the rule; so for models whose logits are more than products of keys and queries.
HeadSet heads_of_model(const std::string& model, const std::string& inputs, const ModelReading& reading,
                       Threads& threads);

/// What a head's choices have in common.
enum class ChoiceKind : std::uint8_t {
  offset,     ///< the token so many places from the query
  constant,   ///< the token at one place of the sequence, or one word
  word,       ///< another token that is the same word as the query
  induction,  ///< the token after an earlier or later token that is the same word as the query
};

std::string_view name_of(ChoiceKind kind);  ///< the name that files, JSON and messages use

/// How many of the choices are of a kind.
struct KindShare {
  ChoiceKind kind = ChoiceKind::constant;  ///< of the choices
  double share = 0;                        ///< from 0 to 1
  std::string words;                       ///< which one: "offset -1", "position 0", "«the»"
};

/// The 10, 50 and 90 % quantiles of a number over queries.
struct Quantiles {
  double low = 0;     ///< 10 %; NaN if there are no queries
  double middle = 0;  ///< 50 %
  double high = 0;    ///< 90 %
};

/// A value of the head beside the same value of random heads: the head with random signs of its components in the
/// eigenbases of keys and queries.
struct NullFacts {
  Index draws = 0;       ///< finished
  double value = 0;      ///< of the head
  double mean = 0;       ///< of the draws
  double deviation = 0;  ///< standard deviation of the draws
  double z = 0;          ///< distance of the value from the mean, in deviations
};

/// A margin problem of a head's choices, and what its answer says.
struct MarginFacts {
  std::string status = "not run";  ///< a name of a MarginStatus, or "not run"
  double objective = 0;            ///< ‖W‖ of the answer
  double dual_objective = 0;       ///< proven lower bound
  double rho = 0;                  ///< the head's smallest gap over its norm, as a share of the largest possible one
  Index support = 0;               ///< rows met with equality
  Index rank = 0;                  ///< nuclear: of the answer
  bool rank_certified = false;     ///< nuclear: of every answer
  std::vector<double> singular_values;  ///< nuclear: of the answer
};

/// A row with weight in the margin problem: a query keeps one token over another. Tokens count within the sequence.
struct SupportPair {
  Index query = 0;             ///< number of the query
  Index sequence = 0;          ///< that it reads
  Index position = -1;         ///< its own token there; −1 in cross attention
  Index keep = 0;              ///< the token it keeps
  Index drop = 0;              ///< the token it drops
  std::string query_text;      ///< the query's word
  std::string keep_text;       ///< the kept token's word
  std::string drop_text;       ///< the dropped token's word
  std::string_view keep_kind;  ///< sink, self, previous, next, same word, induction or other
  std::string_view drop_kind;  ///< the same for the dropped token
  double weight = 0;           ///< multiplier, as a share of all
};

/// The weight of all rows that keep one kind of token over another kind.
struct KindPair {
  std::string_view keep;  ///< kind of the kept token, as in SupportPair
  std::string_view drop;  ///< kind of the dropped token
  double weight = 0;      ///< share of all multipliers
  Index rows = 0;         ///< with weight
};

/// A query whose two best tokens are close.
struct UncertainQuery {
  Index query = 0;          ///< number of the query
  Index sequence = 0;       ///< that it reads
  Index position = -1;      ///< its own token there; −1 in cross attention
  Index first = 0;          ///< its best token, within its sequence
  Index second = 0;         ///< its second
  std::string query_text;   ///< the query's word
  std::string first_text;   ///< the best token's word
  std::string second_text;  ///< the second token's word
  double gap = 0;           ///< difference of their logits
  double weight = 0;        ///< attention of the best
};

/// A head, judged by the choices of its queries among all tokens or among all but the sinks.
struct ViewAudit {
  bool hidden = false;                  ///< the sinks are hidden
  Index choosing = 0;                   ///< queries that see at least two tokens
  Index queries = 0;                    ///< N: queries in the margin problems
  Index held_out = 0;                   ///< queries that the rank curve is judged on
  Index rows = 0;                       ///< of the margin problems
  std::vector<KindShare> kinds;         ///< largest share first
  Quantiles gap;                        ///< logit of the choice above the next
  Quantiles weight;                     ///< attention of the choice
  Quantiles radius;                     ///< distance that keys may move without changing the choice (docs/formats.md)
  std::vector<double> singular_values;  ///< of the head, weighted by the activations
  std::vector<double> agreement;        ///< (d): held-out choices kept by the head of rank 1, 2, …
  Index r90 = 0;                        ///< the least rank that keeps 90 % of them; 0: no held-out queries
  Index r95 = 0;                        ///< the same for 95 %
  MarginFacts frobenius;                ///< in the Frobenius norm
  MarginFacts nuclear;                  ///< in the nuclear norm
  double rank_bound = 0;             ///< a W that keeps the choices with the least Frobenius norm has this rank or more
  NullFacts gap_over_norm;           ///< smallest gap over ‖W‖_F
  NullFacts rho;                     ///< in the Frobenius norm; draws for own choices only
  std::vector<SupportPair> pairs;    ///< largest weight first
  std::vector<KindPair> kind_pairs;  ///< largest weight first
  std::vector<UncertainQuery> uncertain;  ///< smallest gap first
};

/// Everything about one head.
struct HeadAudit {
  Index layer = 0;               ///< as in the file
  Index head = 0;                ///< as in the file
  double difference = 0;         ///< as in the file; NaN if it is not there
  double sink_weight = 0;        ///< mean attention on sinks
  bool complete = false;         ///< false: the time limit or the callback ended it; what is there is right
  double seconds = 0;            ///< spent on it
  std::vector<ViewAudit> views;  ///< own choices; then, if the file has sinks, with those hidden
};

/// The audit of all heads of a file.
struct Audit {
  std::vector<HeadAudit> heads;  ///< in the order of the file
  bool complete = false;         ///< every head is
};

/// How far an audit has come.
struct AuditProgress {
  Index heads = 0;   ///< to audit
  Index done = 0;    ///< finished
  double share = 0;  ///< of the work
};

class AuditJournal;

/// What an audit computes.
struct AuditSettings {
  std::vector<Index> only{};     ///< the heads to audit, as numbers in the file; empty: all
  Index queries = 1000;          ///< N, the most queries in a margin problem: compare heads at equal N
  double drop = 0.1;             ///< share of queries left out because their gaps are the smallest
  Index nulls = 10;              ///< draws of the null
  double tolerance = 1e-8;       ///< relative gap of the head's own problems
  double null_tolerance = 1e-3;  ///< relative gap of those of the null
  std::uint64_t seed = 0;        ///< of the null
  double time_limit = 0;         ///< seconds per head; 0: none
  std::function<bool(const AuditProgress&)> progress{};  ///< called by one thread at a time; return true to stop
  AuditJournal* journal = nullptr;                       ///< heads in it are not audited again; others are added
};

/// Heads that an audit has finished, in a file that survives Ctrl-C and a kill: the same audit with the same journal
/// goes on after them and ends with the same numbers.
class AuditJournal {
 public:
  /// Opens the file, or creates it. If it holds heads of another audit, that is an InputError that says what differs,
  /// or with `replace` they are deleted. Which heads are audited, and on how many threads, makes no other audit.
  AuditJournal(const std::string& path, const HeadSet& heads, const AuditSettings& settings, bool replace);
  ~AuditJournal();
  AuditJournal(const AuditJournal&) = delete;
  AuditJournal& operator=(const AuditJournal&) = delete;

  const HeadAudit* find(Index head) const;           ///< null: not finished before
  Index found() const;                               ///< heads that were finished before
  void keep(Index head, const HeadAudit& finished);  ///< not to be called by two threads at a time
  void remove();                                     ///< deletes the file; the journal cannot be used any more

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Audits every head, each on one thread. InputError if a setting is out of range.
Audit audit(const HeadSet& heads, const AuditSettings& settings, Threads& threads);

/// The arrays of an audit's file (docs/formats.md): one entry per view and head.
NamedArrays audit_arrays(const Audit& audit);

/// The data of the page of an audit as JSON text (docs/page.md), for write_report. `command` is the command line that
/// makes the page again; empty: there is none. Without times: the same audit gives the same bytes.
std::string audit_page(const HeadSet& heads, const Audit& audit, const AuditSettings& settings,
                       const std::string& title, const std::string& command);

/// The task in head space whose margin problem the audit solves for one head: its queries, and the token that each
/// selects. InputError if there is no such head or no query has a choice.
AttentionTask head_task(const HeadSet& heads, Index head, bool hide_sinks, AuditSettings settings);

/// What the choices of one head have in common, as in ViewAudit::kinds. InputError if there is no such head.
std::vector<KindShare> head_kinds(const HeadSet& heads, Index head, bool hide_sinks);

/// ρ of one head in any norm, beside random heads: its smallest gap over its norm, as a share of the largest that any W
/// with these choices has. Solves to `null_tolerance`. The value is NaN if no query has a choice or the solve stalls,
/// and draws that do are left out. InputError if there is no such head.
NullFacts head_rho(const HeadSet& heads, Index head, bool hide_sinks, const Norm& norm, AuditSettings settings,
                   Threads& threads);

}  // namespace attsvm
