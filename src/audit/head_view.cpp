#include "audit/head_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/refuse.h"

namespace attsvm::internal {
namespace {

// Keys of equal words at equal places differ by the rounding of single precision.
constexpr double kCoincide = 1e-6;
// Gaps of rounding's size select nothing.
constexpr double kLeastGap = 1e-6;
constexpr Index kHeldOutEvery = 4;

}  // namespace

HeadView::HeadView(const HeadSet& heads, Index head, bool hidden)
    : heads_(heads), head_(head), hidden_(hidden), keys_(heads.keys(head)), queries_(heads.query_vectors(head)) {
  coincide_ = kCoincide * keys_.cwiseAbs().maxCoeff();
  for (Index i = 0; i < heads.queries(); ++i) {
    if (const auto choice = choose(i, queries_.row(i).transpose())) choices_.push_back(*choice);
  }
}

std::vector<Index> HeadView::shown(Index query) const {
  std::vector<Index> tokens;
  const Index sequence = heads_.sequence(query), begin = heads_.offset(sequence);
  for (Index t = 0; t < heads_.length(sequence); ++t) {
    if (heads_.sees(head_, query, t) && !(hidden_ && heads_.sink(begin + t))) tokens.push_back(t);
  }
  return tokens;
}

std::vector<Index> HeadView::distinct(Index query, std::vector<Index> tokens, Index first) const {
  const Index begin = heads_.offset(heads_.sequence(query));
  const auto winner = keys_.row(begin + first);
  std::erase_if(tokens, [&](Index t) {
    return t != first && (keys_.row(begin + t) - winner).cwiseAbs().maxCoeff() <= coincide_;
  });
  return tokens;
}

std::optional<Choice> HeadView::choose(Index query, const Eigen::VectorXd& Wz) const {
  std::vector<Index> tokens = shown(query);
  if (tokens.size() < 2) return {};
  const Index begin = heads_.offset(heads_.sequence(query));
  Eigen::VectorXd logits(heads_.length(heads_.sequence(query)));
  for (const Index t : tokens) logits(t) = keys_.row(begin + t).dot(Wz);
  const auto larger = [&](Index a, Index b) { return logits(a) < logits(b); };
  Choice choice{.query = query, .first = *std::max_element(tokens.begin(), tokens.end(), larger)};
  double total = 0;
  for (const Index t : tokens) total += std::exp(logits(t) - logits(choice.first));
  choice.weight = 1 / total;
  tokens = distinct(query, std::move(tokens), choice.first);
  std::erase(tokens, choice.first);
  if (tokens.empty()) return {};
  choice.second = *std::max_element(tokens.begin(), tokens.end(), larger);
  choice.gap = logits(choice.first) - logits(choice.second);
  return choice;
}

double HeadView::sink_weight() const {
  double sum = 0;
  Index count = 0;
  for (Index i = 0; i < heads_.queries(); ++i) {
    const Index sequence = heads_.sequence(i), begin = heads_.offset(sequence);
    double sink = 0, total = 0, largest = -std::numeric_limits<double>::infinity();
    bool any = false;
    Eigen::VectorXd logits(heads_.length(sequence));
    for (Index t = 0; t < logits.size(); ++t) {
      logits(t) = heads_.sees(head_, i, t) ? keys_.row(begin + t).dot(queries_.row(i))
                                           : -std::numeric_limits<double>::infinity();
      largest = std::max(largest, logits(t));
      any = any || (heads_.sees(head_, i, t) && heads_.sink(begin + t));
    }
    if (!any) continue;
    for (Index t = 0; t < logits.size(); ++t) {
      const double weight = std::exp(logits(t) - largest);
      total += weight;
      if (heads_.sink(begin + t)) sink += weight;
    }
    sum += sink / total;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::nan("");
}

std::vector<Choice> without_smallest(std::vector<Choice> choices, double drop, Index most) {
  const auto count = static_cast<Index>(choices.size());
  Index leave = std::max(static_cast<Index>(std::floor(drop * static_cast<double>(count))), count - most);
  std::vector<Index> order(choices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto gap = [&](Index k) { return choices[static_cast<std::size_t>(k)].gap; };
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return gap(a) < gap(b); });
  if (count > 0) {
    const double least = kLeastGap * gap(order[order.size() / 2]);
    while (leave < count && !(gap(order[static_cast<std::size_t>(leave)]) > least)) ++leave;
  }
  order.erase(order.begin(), order.begin() + leave);
  std::sort(order.begin(), order.end());
  std::vector<Choice> kept;
  kept.reserve(order.size());
  for (const Index k : order) kept.push_back(choices[static_cast<std::size_t>(k)]);
  return kept;
}

Split split_of(const HeadView& view, const AuditSettings& settings) {
  const bool by_text = view.heads().sequences() >= kHeldOutEvery;
  std::vector<Index> fit, other;
  for (Index k = 0; k < static_cast<Index>(view.choices().size()); ++k) {
    const Index place = by_text ? view.heads().sequence(view.choices()[static_cast<std::size_t>(k)].query) : k;
    (place % kHeldOutEvery == kHeldOutEvery - 1 ? other : fit).push_back(k);
  }
  const auto wanted = static_cast<Index>(std::ceil(static_cast<double>(settings.queries) / (1 - settings.drop)));
  const auto evenly = [&](const std::vector<Index>& from) {
    const auto there = static_cast<Index>(from.size()), count = std::min(there, wanted);
    std::vector<Index> chosen;
    for (Index j = 0; j < count; ++j) chosen.push_back(from[static_cast<std::size_t>(j * there / count)]);
    return chosen;
  };
  return {evenly(fit), evenly(other)};
}

HeadProblem head_problem(const HeadView& view, const std::vector<Choice>& choices) {
  const HeadSet& heads = view.heads();
  const Index d = heads.size();
  std::vector<std::vector<Index>> tokens;  // of each sequence of the task
  std::vector<Index> base;                 // the file's sequence of each
  std::vector<Index> shared(static_cast<std::size_t>(heads.sequences()), -1);
  std::vector<Index> sequence, visible, select, query;
  for (const Choice& choice : choices) {
    const Index home = heads.sequence(choice.query);
    const std::vector<Index> list = view.distinct(choice.query, view.shown(choice.query), choice.first);
    Index& common = shared[static_cast<std::size_t>(home)];
    if (common < 0) {  // everything that any query of the sequence may see in this view
      std::vector<Index> all;
      for (Index t = 0; t < heads.length(home); ++t) {
        if (!(view.hidden() && heads.sink(heads.offset(home) + t))) all.push_back(t);
      }
      common = static_cast<Index>(tokens.size());
      tokens.push_back(std::move(all));
      base.push_back(home);
    }
    Index place = common;
    const auto& all = tokens[static_cast<std::size_t>(common)];
    if (list.size() > all.size() || !std::equal(list.begin(), list.end(), all.begin())) {  // not a beginning of it
      place = static_cast<Index>(tokens.size());
      tokens.push_back(list);
      base.push_back(home);
    }
    const auto& there = tokens[static_cast<std::size_t>(place)];
    sequence.push_back(place);
    visible.push_back(static_cast<Index>(list.size()));
    select.push_back(std::find(there.begin(), there.end(), choice.first) - there.begin());
    query.push_back(choice.query);
  }
  std::vector<Index> offsets{0};
  for (const auto& list : tokens) offsets.push_back(offsets.back() + static_cast<Index>(list.size()));
  std::vector<double> numbers, vectors;
  numbers.reserve(static_cast<std::size_t>(offsets.back() * d));
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    for (const Index t : tokens[s]) {
      const double* row = view.keys().row(heads.offset(base[s]) + t).data();
      numbers.insert(numbers.end(), row, row + d);
    }
  }
  for (const Index i : query) {
    const double* row = view.queries().row(i).data();
    vectors.insert(vectors.end(), row, row + d);
  }
  const auto count = static_cast<Index>(query.size());
  if (count == 0) refuse("no query of this head has a choice between tokens");
  AttentionTask task(TaskArrays{.tokens = Array::own(std::move(numbers), {offsets.back(), d}),
                                .offsets = Array::own(offsets, {static_cast<Index>(offsets.size())}),
                                .queries = Array::own(std::move(vectors), {count, d}),
                                .sequence = Array::own(std::move(sequence), {count}),
                                .visible = Array::own(std::move(visible), {count}),
                                .select = Array::own(std::move(select), {count})});
  return {std::move(task), std::move(query), std::move(tokens)};
}

}  // namespace attsvm::internal
