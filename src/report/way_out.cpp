#include "report/way_out.h"

#include <algorithm>

#include "attsvm/margin.h"

namespace attsvm::internal {
namespace {

constexpr Index kRows = 2'000;       // larger problems are not searched: each try is a solve
constexpr std::size_t kTries = 40;   // most queries of a contradiction, and most tokens of a query, that are tried
constexpr std::size_t kGiven = 100;  // most queries that are given up

/// How a query is given up: its rows ≥ 1 become ≥ 0, or are left out.
enum class GivingUp : std::uint8_t { relax, leave };

class WayOut {
 public:
  WayOut(const AttentionTask& task, const Selection& selection, Threads& threads)
      : task_(task), selection_(selection), solver_(threads) {
    if (task.head().kind != HeadKind::none) values_ = head_values(task);
  }

  Json json() {
    const std::vector<Index> relax = fewest(GivingUp::relax), leave = fewest(GivingUp::leave);
    const bool some = !relax.empty() && static_cast<Index>(relax.size()) < task_.queries();
    return {{"relax", some ? Json(relax) : Json(nullptr)},
            {"leave", leave.empty() ? Json(nullptr) : Json(leave)},
            {"instead", leave.empty() || !selection_.is_single() ? Json(nullptr) : instead(leave)}};
  }

 private:
  MarginProblem problem(std::span<const Index> given, GivingUp how) const {
    if (how == GivingUp::relax) return MarginProblem::attention(task_, selection_, given);
    std::vector<std::vector<Index>> seen, kept;
    for (Index i = 0; i < task_.queries(); ++i) {
      seen.emplace_back(task_.seen(i).begin(), task_.seen(i).end());
      kept.emplace_back(selection_.kept(i).begin(), selection_.kept(i).end());
    }
    for (const Index i : given)  // a query that sees one token has no rows
      seen[static_cast<std::size_t>(i)] = kept[static_cast<std::size_t>(i)] = {selection_.first(i)};
    TaskArrays arrays = task_.arrays();
    arrays.select = {};
    arrays.visible = Selection::sets(seen).mask(task_.longest());
    return MarginProblem::attention(AttentionTask(std::move(arrays)), Selection::sets(kept));
  }

  bool works(const MarginProblem& problem) { return solver_.solve(problem, {}).status == MarginStatus::optimal; }

  bool proven(const MarginProblem& problem) {
    const MarginSolution& solution = solver_.solve(problem, {});
    return solution.status == MarginStatus::optimal &&
           verify(problem.task(), stored(problem, solution, SolveSettings{}.tolerance)).valid;
  }

  /// Gives up, contradiction by contradiction, a query that ends them all, or else the heaviest. Whatever ends them all
  /// is part of the contradiction at hand, so a single such query is never missed. Then takes back what was not needed.
  std::vector<Index> fewest(GivingUp how) {
    std::vector<Index> given;
    for (std::vector<Index> next; !(next = heaviest(problem(given, how))).empty();) {
      if (given.size() == kGiven) return {};
      given.push_back(next.front());
      const auto last = std::find_if(next.begin(), next.end(), [&](Index query) {
        given.back() = query;
        return works(problem(given, how));
      });
      given.back() = last != next.end() ? *last : next.front();
    }
    for (std::size_t k = given.size(); k-- > 0;) {
      std::vector<Index> fewer = given;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      if (works(problem(fewer, how))) given = std::move(fewer);
    }
    std::sort(given.begin(), given.end());
    return proven(problem(given, how)) ? given : std::vector<Index>{};
  }

  /// The queries whose margins contradict each other, heaviest first; empty if there is no contradiction.
  std::vector<Index> heaviest(const MarginProblem& problem) {
    const MarginSolution& solution = solver_.solve(problem, {});
    if (solution.status != MarginStatus::infeasible) return {};
    std::vector<std::pair<double, Index>> weights;
    for (const MarginGroup& group : problem.groups()) {
      double weight = 0;
      for (Index k = group.first_row; k < group.first_row + group.rows; ++k)
        weight += problem.rhs(k) * solution.dual(k);
      if (weight > 0) weights.emplace_back(weight, group.query);
    }
    std::stable_sort(weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (weights.size() > kTries) weights.resize(kTries);
    std::vector<Index> queries(weights.size());
    std::transform(weights.begin(), weights.end(), queries.begin(), [](const auto& one) { return one.second; });
    return queries;
  }

  /// The W that keeps the rest prefers some token of each query that was left out: these can be kept. Then better
  /// scores are tried, query by query.
  Json instead(const std::vector<Index>& leave) {
    std::vector<Index> tokens = selection_.firsts();
    const RowMatrix W = solver_.solve(problem(leave, GivingUp::leave), {}).W;
    for (const Index i : leave) {
      const Eigen::VectorXd logits = task_.seen_keys(i) * (W * task_.query(i));
      Index best = 0;
      logits.maxCoeff(&best);
      tokens[static_cast<std::size_t>(i)] = task_.seen(i)[static_cast<std::size_t>(best)];
    }
    const auto selected = [&] { return MarginProblem::attention(task_, Selection::single(tokens)); };
    if (!works(selected())) return nullptr;  // two tokens that W cannot tell apart
    for (const Index i : leave) {
      Index& token = tokens[static_cast<std::size_t>(i)];
      const Index safe = token;
      for (const Index better : better_than(i, safe)) {
        token = better;
        if (works(selected())) break;
        token = safe;
      }
    }
    if (!proven(selected())) return nullptr;
    Json list = Json::array();
    for (const Index i : leave) {
      const Index token = tokens[static_cast<std::size_t>(i)];
      list.push_back(
          {{"query", i},
           {"token", token},
           {"score_gap", values_.empty() ? Json(nullptr) : Json(score(i, selection_.first(i)) - score(i, token))}});
    }
    return list;
  }

  double score(Index query, Index token) const {
    return task_.label(query) * values_[static_cast<std::size_t>(task_.offset(task_.sequence(query)) + token)];
  }

  /// Tokens that score higher than this one, best first.
  std::vector<Index> better_than(Index query, Index token) const {
    if (values_.empty()) return {};
    std::vector<Index> tokens(task_.seen(query).begin(), task_.seen(query).end());
    std::erase_if(tokens, [&](Index one) { return score(query, one) <= score(query, token); });
    std::stable_sort(tokens.begin(), tokens.end(), [&](Index a, Index b) { return score(query, a) > score(query, b); });
    if (tokens.size() > kTries) tokens.resize(kTries);
    return tokens;
  }

  const AttentionTask& task_;
  const Selection& selection_;
  MarginSolver solver_;
  std::vector<double> values_;  // of the head, per token; empty without a head
};

}  // namespace

Json way_out_json(const AttentionTask& task, const Check& check, Threads& threads) {
  if (!check.decided || check.separable || MarginProblem::attention(task, check.selection).rows() > kRows)
    return nullptr;
  return WayOut(task, check.selection, threads).json();
}

}  // namespace attsvm::internal
