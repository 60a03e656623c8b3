#include "audit/pairs.h"

#include <algorithm>
#include <map>

#include "audit/kinds.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kPairs = 20, kUncertain = 10;  // that are worth reading

}  // namespace

void describe_support(const HeadSet& heads, const HeadProblem& problem, const MarginProblem& rows,
                      const Eigen::VectorXd& dual, ViewAudit& audit) {
  const double total = dual.sum();
  std::map<std::pair<std::string_view, std::string_view>, KindPair> kinds;
  for (const MarginGroup& group : rows.groups()) {
    const Index query = problem.query[static_cast<std::size_t>(group.query)];
    const auto& tokens = problem.tokens[static_cast<std::size_t>(rows.task().sequence(group.query))];
    const Index keep = tokens[static_cast<std::size_t>(group.keep)], begin = heads.offset(heads.sequence(query));
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (!(dual(k) > 0)) continue;
      const Index drop = tokens[static_cast<std::size_t>(rows.drop(k))];
      const SupportPair pair{.query = query,
                             .sequence = heads.sequence(query),
                             .position = heads.self() ? heads.position(query) : -1,
                             .keep = keep,
                             .drop = drop,
                             .query_text = heads.query_text(query),
                             .keep_text = heads.text(begin + keep),
                             .drop_text = heads.text(begin + drop),
                             .keep_kind = kind_of_token(heads, query, keep),
                             .drop_kind = kind_of_token(heads, query, drop),
                             .weight = dual(k) / total};
      KindPair& sum = kinds[{pair.keep_kind, pair.drop_kind}];
      sum.keep = pair.keep_kind;
      sum.drop = pair.drop_kind;
      sum.weight += pair.weight;
      ++sum.rows;
      audit.pairs.push_back(pair);
    }
  }
  const auto heavier = [](const auto& a, const auto& b) { return a.weight > b.weight; };
  std::stable_sort(audit.pairs.begin(), audit.pairs.end(), heavier);
  if (audit.pairs.size() > kPairs) audit.pairs.resize(kPairs);
  for (const auto& [names, sum] : kinds) audit.kind_pairs.push_back(sum);
  std::stable_sort(audit.kind_pairs.begin(), audit.kind_pairs.end(), heavier);
}

std::vector<UncertainQuery> least_certain(const HeadView& view) {
  const HeadSet& heads = view.heads();
  std::vector<Choice> choices = view.choices();
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.gap < b.gap; });
  if (choices.size() > kUncertain) choices.resize(kUncertain);
  std::vector<UncertainQuery> list;
  for (const Choice& choice : choices) {
    const Index begin = heads.offset(heads.sequence(choice.query));
    list.push_back({.query = choice.query,
                    .sequence = heads.sequence(choice.query),
                    .position = heads.self() ? heads.position(choice.query) : -1,
                    .first = choice.first,
                    .second = choice.second,
                    .query_text = heads.query_text(choice.query),
                    .first_text = heads.text(begin + choice.first),
                    .second_text = heads.text(begin + choice.second),
                    .gap = choice.gap,
                    .weight = choice.weight});
  }
  return list;
}

}  // namespace attsvm::internal
