#include "attsvm/task.h"
#include "base/refuse.h"
#include "verify/rows.h"

namespace attsvm {

StoredSolution completed(const AttentionTask& task, StoredSolution solution) {
  if (!solution.w_only) return solution;
  if (task.next_token()) {
    solution.problem = "graph";
    return solution;
  }
  if (!solution.select.given()) {
    const Selection chosen = task.select() ? *task.select() : optimal_tokens(task).selection;
    solution.select = chosen.mask(task.longest());
  }
  if (solution.relax.empty()) solution.relax.assign(static_cast<std::size_t>(task.queries()), false);
  return solution;
}

}  // namespace attsvm

namespace attsvm::internal::proof {
namespace {

/// The task's selection, else its optimal tokens; nothing if it has no head either.
std::optional<Selection> own_selection(const AttentionTask& task) {
  if (task.select()) return task.select();
  try {
    return optimal_tokens(task).selection;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// "3 queries (0, 2, 5)"; lists only the first few.
std::string list_words(const std::vector<Index>& queries) {
  constexpr std::size_t kMostNamed = 8;
  const std::size_t named = std::min(queries.size(), kMostNamed);
  return fmt::format("{} {} ({}{})", queries.size(), queries.size() == 1 ? "query" : "queries",
                     fmt::join(queries.begin(), queries.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                     named < queries.size() ? ", ..." : "");
}

}  // namespace

Difference difference_from_own(const AttentionTask& task, const StoredSolution& claim) {
  if (task.next_token()) return {};  // its graphs are its only question
  const std::optional<Selection> own = own_selection(task);
  Difference found{.own = own.has_value()};
  for (Index i = 0; i < task.queries() && own; ++i) {
    for (Index t = 0; t < task.longest(); ++t) {
      if ((claim.select.data[i * task.longest() + t] != std::byte{0}) == own->keeps(i, t)) continue;
      found.changed.push_back(i);
      break;
    }
  }
  for (Index i = 0; i < task.queries(); ++i) {
    if (claim.relax[static_cast<std::size_t>(i)]) found.relaxed.push_back(i);
  }
  return found;
}

void name_question(const AttentionTask& task, const StoredSolution& claim, const Difference& difference,
                   Verification& result) {
  if (task.next_token()) return;
  const std::vector<Index>& changed = difference.changed;
  result.relaxed = difference.relaxed;
  result.own_selection = difference.own && changed.empty();
  const std::string whose = task.select() ? "the task's own selection" : "the task's optimal tokens";
  std::string& words = result.question;
  if (!difference.own) {
    words = "the file's selection; the task has none of its own";
  } else if (!changed.empty()) {
    words = fmt::format("the file's selection, which differs from {} for {}", whose, list_words(changed));
  }
  if (!result.relaxed.empty()) {
    words +=
        fmt::format("{}, with >= 1 relaxed to >= 0 for {}", words.empty() ? whose : "", list_words(result.relaxed));
  }
  if (claim.problem == "v")
    words = fmt::format("labels against values (problem v), for {}", words.empty() ? whose : words);
}

}  // namespace attsvm::internal::proof
