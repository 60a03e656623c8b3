#include "audit/null.h"

#include <cmath>

namespace attsvm::internal {

std::vector<Choice> choices_at(const HeadView& view, const std::vector<Index>& places) {
  std::vector<Choice> choices;
  for (const Index k : places) choices.push_back(view.choices()[static_cast<std::size_t>(k)]);
  return choices;
}

std::vector<Choice> choices_of(const HeadView& view, const std::vector<Index>& places, const RowMatrix& W,
                               const AuditSettings& settings) {
  std::vector<Choice> choices;
  for (const Index place : places) {
    const Index query = view.choices()[static_cast<std::size_t>(place)].query;
    if (const auto choice = view.choose(query, W * view.queries().row(query).transpose())) choices.push_back(*choice);
  }
  return without_smallest(std::move(choices), settings.drop, settings.queries);
}

std::uint32_t null_instance(Index head, bool hidden) { return static_cast<std::uint32_t>(2 * head + (hidden ? 1 : 0)); }

NullFacts null_facts(double value, const std::vector<double>& draws) {
  const auto count = static_cast<double>(draws.size());
  double mean = 0, square = 0;
  for (const double one : draws) mean += one / count;
  for (const double one : draws) square += (one - mean) * (one - mean);
  const double deviation = draws.size() > 1 ? std::sqrt(square / (count - 1)) : std::nan("");
  if (draws.empty()) mean = std::nan("");
  return {static_cast<Index>(draws.size()), value, mean, deviation, (value - mean) / deviation};
}

}  // namespace attsvm::internal
