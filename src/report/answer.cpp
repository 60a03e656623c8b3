#include "report/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attsvm/error.h"
#include "attsvm/margin.h"
#include "attsvm/task.h"
#include "base/spectrum.h"
#include "margin/stored_solution.h"
#include "report/conflict.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kRows = 120'000;

/// The problem that the answer's own select, relax and problem describe.
MarginProblem problem_of(const AttentionTask& task, const StoredSolution& stored) {
  if (task.next_token()) return MarginProblem::graph(task, priority_graphs(task));
  Selection selection = Selection::from_array(stored.select, task.visible(), task.longest(), "select");
  if (stored.problem == "v") return MarginProblem::value(task, std::move(selection));
  std::vector<Index> relax;
  for (std::size_t i = 0; i < stored.relax.size(); ++i) {
    if (stored.relax[i]) relax.push_back(static_cast<Index>(i));
  }
  return MarginProblem::attention(task, std::move(selection), relax);
}

bool has_margin(const StoredSolution& stored) {
  for (std::size_t k = 0; k < stored.rhs.size(); ++k) {
    if (!stored.row_equal[k] && stored.rhs[k] > 0) return true;
  }
  return false;
}

Index support_count(const StoredSolution& stored) {
  Index count = 0;
  for (std::size_t k = 0; k < stored.slack.size(); ++k) count += is_support(stored, k) ? 1 : 0;
  return count;
}

std::vector<std::string> conflict_words(const Answer& answer) {
  const double residual = answer.verification.residual;
  const std::size_t rows = static_cast<std::size_t>(
      std::count_if(answer.stored.dual.begin(), answer.stored.dual.end(), [](double x) { return x != 0; }));
  const std::string nothing =
      fmt::format("No W keeps all of these {}: ", answer.stored.problem == "graph" ? "orders" : "tokens");
  const std::size_t all = answer.stored.dual.size();
  if (rows == 1)
    return {nothing + (all == 1 ? "their only row" : fmt::format("of {} rows one", all)) + " cannot be met.",
            "It demands a margin from " +
                (residual > 0 ? fmt::format("a matrix of size {:.2g}, which is zero to rounding.", residual)
                              : "a matrix that is zero.")};
  return {nothing + fmt::format("of {} rows {} contradict each other.", all, rows),
          "Each of them demands a margin. Weighted and added up, the margins are at least 1, but the matrices of the "
          "rows add up to " +
              (residual > 0
                   ? fmt::format("a matrix of size {:.2g}, which is zero to rounding: no W with Frobenius norm below "
                                 "{:.3g} meets them all.",
                                 residual, 1 / residual)
                   : "zero: no W meets them all.")};
}

std::vector<std::string> optimum_words(const Answer& answer) {
  const StoredSolution& s = answer.stored;
  const Verification& v = answer.verification;
  const std::string norm = norm_words(s.norm);
  std::vector<std::string> words;
  if (s.w_only) {
    words.push_back(
        fmt::format("W meets every row; its {} is {:.12g}. It came without multipliers, so nothing is "
                    "proven about how small it could be.",
                    norm, v.objective));
    return words;
  }
  if (s.is_soft()) {
    const auto missed = std::count_if(s.xi.begin(), s.xi.end(), [](double xi) { return xi > kSupportTolerance; });
    words.push_back(fmt::format(
        "The margin is soft: {} of {} queries stay behind it, at a price. Half the squared norm and the prices "
        "add up to {:.12g}, and no W costs less than {:.12g}: a share of {:.2g}.",
        missed, s.xi.size(), v.objective, v.dual_objective, v.gap));
    return words;
  }
  words.push_back(
      fmt::format("All {} rows hold for this W: the largest violation is {:.2g}.", s.rhs.size(), v.violation));
  if (s.status == "optimal") {
    words.push_back(
        fmt::format("Every W that meets them has a {} of at least {:.12g}, and this one has {:.12g}: no W "
                    "is smaller by more than a share of {:.2g}.",
                    norm, v.dual_objective, v.objective, v.gap));
  } else {
    words.push_back(
        fmt::format("The solver was stopped early. Every W that meets the rows has a {} of at least "
                    "{:.12g}, and this one has {:.12g}: a smaller one may exist, by a share of {:.2g} at most.",
                    norm, v.dual_objective, v.objective, v.gap));
  }
  if (has_margin(s) && s.objective > 0) {
    words.push_back(fmt::format("Scaled to norm one, it keeps every {} ahead by {:.6g}{}.",
                                s.problem == "graph" ? "edge between components" : "selected token", 1 / s.objective,
                                s.status == "optimal" ? "; no W of that norm keeps them further ahead" : ""));
  }
  words.push_back(fmt::format("Rows met with equality: {}. They determine W.", support_count(s)));
  if (!answer.rank_words.empty()) words.push_back(answer.rank_words);
  return words;
}

std::vector<std::string> proof_words(const Answer& answer) {
  if (!answer.verification.valid) {
    return {"This answer did not pass verification, so nothing is proven: " + answer.verification.reason};
  }
  std::vector<std::string> words =
      answer.stored.status == "infeasible" ? conflict_words(answer) : optimum_words(answer);
  words.emplace_back(
      "Checked by code that links none of the solvers: it rebuilt every row from the task and computed every number "
      "stated here from the rows.");
  return words;
}

std::string rank_words(const MarginSolution& solution) {
  if (!solution.norm.is_nuclear() || solution.status != MarginStatus::optimal) return {};
  if (!solution.rank.certified)
    return fmt::format("Its rank is at most {}; equality is not proven: {}.", solution.rank.rank, solution.rank.words);
  return fmt::format(
      "Its rank is {}, and that is proven: in every optimum the other singular values sum to at most {:.2g}.",
      solution.rank.rank, solution.rank.outside_mass);
}

/// (δᵀWζ)/‖W‖_F of every row.
std::vector<double> margins_of(const StoredSolution& stored) {
  const double norm = stored.W.stableNorm();
  std::vector<double> margins;
  for (std::size_t k = 0; k < stored.rhs.size(); ++k) margins.push_back((stored.rhs[k] + stored.slack[k]) / norm);
  return margins;
}

Json rows_json(const StoredSolution& stored) {
  const std::vector<std::size_t> shown = shown_rows(stored);
  const auto column = [&](const auto& list) {
    std::vector<typename std::decay_t<decltype(list)>::value_type> part;
    part.reserve(shown.size());
    for (const std::size_t k : shown) part.push_back(list[k]);
    return part;
  };
  std::vector<std::size_t> support;
  for (std::size_t k = 0; k < shown.size(); ++k) {
    if (is_support(stored, shown[k])) support.push_back(k);
  }
  return {{"total", stored.rhs.size()},
          {"query", column(stored.row_query)},
          {"keep", column(stored.row_keep)},
          {"drop", column(stored.row_drop)},
          {"equal", column(stored.row_equal)},
          {"rhs", column(stored.rhs)},
          {"slack", column(stored.slack)},
          {"dual", column(stored.dual)},
          {"support", support},
          {"margin", stored.status == "infeasible" ? Json(nullptr) : Json(column(margins_of(stored)))}};
}

}  // namespace

Json numbers_json(const StoredSolution& solution, double gap, double violation) {
  const bool bounded = solution.w_only || std::isfinite(gap);  // else W is not feasible
  const double size = solution.is_soft() ? solution.W.stableNorm() : solution.objective;
  return {{"objective", solution.objective},
          {"dual_objective", solution.w_only ? Json(nullptr) : Json(solution.dual_objective)},
          {"gap", gap},
          {"violation", violation},
          {"margin", bounded && has_margin(solution) && size > 0 ? Json(1 / size) : Json(nullptr)},
          {"rank", solution.status == "infeasible" ? Json(nullptr) : Json(rank_of(solution))},
          {"support", support_count(solution)},
          {"constraints", solution.rhs.size()}};
}

Json penalty_json(const StoredSolution& solution) {
  const auto& all = solution.penalty;
  if (all.empty()) return nullptr;
  const bool same = std::all_of(all.begin(), all.end(), [&](double one) { return one == all.front(); });
  return same ? Json(all.front()) : Json(all);
}

Json spectrum_json(const RowMatrix& W) {
  const Eigen::VectorXd values = singular_values(W);
  if (values.size() == 0 || !(values(0) > 0)) return nullptr;
  return {{"values", values}, {"relative", Eigen::VectorXd(values / values(0))}};
}

std::vector<std::size_t> shown_rows(const StoredSolution& stored) {
  std::vector<std::size_t> rows(stored.rhs.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (rows.size() <= kRows) return rows;
  const bool conflict = stored.status == "infeasible";
  const auto before = [&](std::size_t a, std::size_t b) {
    const double x = conflict ? -std::abs(stored.dual[a]) : stored.slack[a];
    const double y = conflict ? -std::abs(stored.dual[b]) : stored.slack[b];
    return x != y ? x < y : a < b;
  };
  std::nth_element(rows.begin(), rows.begin() + kRows, rows.end(), before);
  rows.resize(kRows);
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool Answer::settles(std::string_view norm, const Array* select) const {
  if (!verification.valid || stored.w_only || stored.status == "limit" || stored.status == "stalled") return false;
  if (stored.norm != norm || stored.problem == "v" || stored.is_soft() ||
      std::find(stored.relax.begin(), stored.relax.end(), true) != stored.relax.end())
    return false;
  if (select == nullptr) return true;
  const Array own = to_f64(stored.select), other = to_f64(*select);
  return own.shape == other.shape && std::equal(f64_span(own).begin(), f64_span(own).end(), f64_span(other).begin());
}

bool Answer::has_W() const {
  return verification.valid && stored.problem != "v" && stored.status != "infeasible" && !stored.W.isZero(0);
}

std::string Answer::label() const {
  std::string name = stored.problem == "v" ? "v^{mm}" : stored.problem == "graph" ? "W^{gsvm}" : "W^{mm}";
  if (stored.is_soft()) return name + "_{soft}";
  if (stored.norm == "fro") return name;
  return name + (stored.norm == "nuc" ? "_{*}" : "_{" + stored.norm.substr(stored.norm.find(':') + 1) + "}");
}

Answer judged(const AttentionTask& task, const ReportSolution& given) {
  Answer answer{.file = given.file, .stored = given.answer};
  StoredSolution& s = answer.stored;
  with_place(given.file, [&] {
    s = completed(task, std::move(s));
    answer.verification = verify(task, s);
    if (s.w_only && answer.verification.valid) {  // fill in what its file does not say
      const MarginProblem problem = problem_of(task, s);
      MarginSolution solution;
      solution.W = s.W;
      solution.norm = Norm::parse(s.norm);
      solution.dual = Eigen::VectorXd::Zero(problem.rows());
      solution.slack = problem.values(s.W);
      for (Index k = 0; k < problem.rows(); ++k) solution.slack(k) -= problem.rhs(k);
      solution.objective = answer.verification.objective;
      StoredSolution full = stored(problem, solution, 0);
      full.w_only = true;
      s = std::move(full);
    }
  });
  return answer;
}

Answer solved_answer(const AttentionTask& task, const MarginProblem& problem, const MarginSolution& solution) {
  Answer answer;
  answer.stored = stored(problem, solution, SolveSettings{}.tolerance);
  answer.rank_words = rank_words(solution);
  answer.verification = verify(task, answer.stored);
  return answer;
}

Json answer_json(const AttentionTask& task, const Axes* axes, const Answer& answer) {
  const StoredSolution& s = answer.stored;
  const Verification& v = answer.verification;
  const bool infeasible = s.status == "infeasible", feasible = v.valid && !infeasible;
  Json data{{"label", answer.label()}, {"file", answer.file.empty() ? Json(nullptr) : Json(answer.file)},
            {"norm", s.norm},          {"norm_words", s.is_soft() ? "soft-margin cost" : norm_words(s.norm)},
            {"problem", s.problem},    {"status", v.valid && !s.w_only ? Json(s.status) : Json(nullptr)},
            {"valid", v.valid},        {"reason", v.valid ? Json(nullptr) : Json(v.reason)}};
  for (const char* name : {"objective", "dual_objective", "gap", "violation", "tolerance", "margin", "rank", "support"})
    data[name] = nullptr;
  data["constraints"] = s.rhs.size();
  for (const char* name : {"residual", "norm_bound", "words", "conflict", "singular_values", "directions", "rows"})
    data[name] = nullptr;
  data["words"] = proof_words(answer);
  if (!v.valid) return data;  // its arrays may not even fit together
  if (!s.w_only) data["tolerance"] = s.tolerance;
  data["rows"] = rows_json(s);
  if (infeasible) {
    data["residual"] = v.residual;
    data["norm_bound"] = v.norm_bound;
    data["conflict"] = conflict_json(problem_of(task, s), s);
  }
  if (!feasible) return data;
  data.update(numbers_json(s, v.gap, v.violation));
  if (s.problem != "v") data["singular_values"] = spectrum_json(s.W);
  if (answer.has_W() && axes != nullptr) {
    const Index queries = std::min(task.queries(), kPageNumbers / (axes->count() + 1));
    data["directions"] = directions_json(task, *axes, s.W, queries);
  }
  return data;
}

}  // namespace attsvm::internal
