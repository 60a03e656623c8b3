// Claims about where training ends: the direction of W, from any start, from a good one, and of K Qᵀ.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attsvm/positions.h"
#include "attsvm/theory.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "train/gradient.h"

namespace attsvm::internal {
namespace {

constexpr Index kManySteps = 20000;  // of 0.1, normalized: ‖W‖ is then about 2000
constexpr double kAligned = 1e-4;    // 1 − correlation that counts as converged by then; it falls like 1/steps²
constexpr std::uint32_t kStartStream = 0x5c0e0100;

std::string far_from(double distance, std::span<const Index> selected) {
  return fmt::format("1 - correlation is {:.3g} at the end; selected tokens {}", distance, fmt::join(selected, " "));
}

/// Runs from zero, with `slope` times the distance taken off the logits, against the SVM of the tokens that they end
/// at.
ClaimResult test_own_selection(const Recipe& recipe, double slope, const Claim& claim, const ClaimSettings& settings,
                               Threads& threads) {
  constexpr Index kEarly = kManySteps / 10;
  Tally tally(claim, settings);
  std::vector<double> distances, early;
  Index closer = 0, optimal = 0;
  tally.continues(distances, early, closer, optimal);
  tally.for_batches(0, [&](Index first, Index count) {
    auto tasks = draw_tasks(recipe, {settings.seed, first, count}, threads);
    if (slope != 0) {
      for (AttentionTask& task : tasks)
        task = with_positions(task, {.kind = PositionKind::fixed_slope, .slope = slope});
    }
    const auto runs = train_many(tasks, {.steps = kManySteps, .record = {.at = {kEarly, kManySteps}}}, threads);
    const auto selected = selected_by(tasks, runs, threads);
    const auto best = optimal_of(tasks);
    const auto svm = solve_verified(attention_problems(tasks, selected), Norm::frobenius(), threads);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      const double now = distance(runs[k].W, svm[k]), before = distance(runs[k].records.front().W, svm[k]);
      distances.push_back(now);
      early.push_back(before);
      closer += now < before ? 1 : 0;
      optimal += selected[k] == best[k] ? 1 : 0;
      tally.add(tasks[k], now <= kAligned, now, far_from(now, selected[k]), {{"x_W", Array::own(runs[k].W)}});
    }
  });
  tally.figure(fmt::format("median 1 - correlation after {} steps", kEarly), median(early));
  tally.figure(fmt::format("median 1 - correlation after {} steps", kManySteps), median(distances));
  tally.share("share of runs that are closer at the end than after a tenth of it", closer,
              static_cast<Index>(distances.size()));
  tally.share("share of runs that select the optimal tokens", optimal, static_cast<Index>(distances.size()));
  return std::move(tally).result();
}

/// The smallest δᵀ W ζ of all rows.
double smallest_row(const MarginProblem& problem, const RowMatrix& W) { return problem.values(W).minCoeff(); }

/// The task restricted to some of its queries; its labels must be +1.
AttentionTask with_queries(const AttentionTask& task, const std::vector<Index>& kept) {
  TaskArrays arrays = task.arrays();
  RowMatrix queries(static_cast<Index>(kept.size()), task.query_size());
  for (std::size_t k = 0; k < kept.size(); ++k) queries.row(static_cast<Index>(k)) = task.query(kept[k]);
  arrays.queries = Array::own(queries);
  arrays.sequence = Array::own(kept, {queries.rows()});
  return AttentionTask(std::move(arrays));
}

/// For a run that misses the optimal tokens of some queries: whether its limit is the SVM of the other queries. It can
/// be if that SVM puts the missed tokens more than its margin behind, since their gradient then vanishes faster.
struct Stuck {
  double to_others = kUnmeasured;  // 1 − correlation with that SVM
  bool predicted = false;          // that SVM puts the missed tokens so far behind
};

Stuck explain(const AttentionTask& task, const std::vector<Index>& best, const std::vector<Index>& selected,
              const RowMatrix& W, Threads& threads) {
  std::vector<Index> right, wrong, tokens;
  for (Index i = 0; i < task.queries(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    (selected[at] == best[at] ? right : wrong).push_back(i);
    if (selected[at] == best[at]) tokens.push_back(best[at]);
  }
  if (right.empty()) return {};
  const AttentionTask rest = with_queries(task, right);
  const auto problems = attention_problems({&rest, 1}, {&tokens, 1});
  const MarginSolution svm = solve_verified(problems, Norm::frobenius(), threads).front();
  Stuck stuck{.to_others = distance(W, svm), .predicted = true};
  for (const Index i : wrong) {
    const Eigen::VectorXd logits = task.keys(task.sequence(i)) * (svm.W * task.query(i));
    if (logits.maxCoeff() - logits(best[static_cast<std::size_t>(i)]) <= 1) stuck.predicted = false;
  }
  return stuck;
}

constexpr std::array<std::string_view, 3> kStarts{"a random W of norm 1", "a random W of norm 10", "10 away from W^mm"};

/// Start `which` of kStarts for every task.
std::vector<Start> far_starts(std::span<const MarginSolution> svm, std::size_t which, std::uint64_t seed, Index first) {
  std::vector<Start> starts;
  for (std::size_t k = 0; k < svm.size(); ++k) {
    const Random random(seed, static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(k),
                        kStartStream + static_cast<std::uint32_t>(which));
    const RowMatrix& mm = svm[k].W;
    starts.push_back({.W = which == 2 ? RowMatrix(-10 / mm.norm() * mm)
                                      : random_matrix(random, mm.rows(), mm.cols(), which == 0 ? 1 : 10)});
  }
  return starts;
}

/// The example of docs/claims.md: two inputs of two tokens each, differences (1,0) and (−2,1), started at (6,0).
struct TwoInputs {
  double to_svm, to_first;  // 1 − correlation of the end with p^mm = (1,3), and with (1,0)
};

TwoInputs run_two_inputs(Threads& threads) {
  const AttentionTask task({.tokens = Array::own(std::vector<double>{1, 0, 1, 0}, {2, 2, 1}),
                            .keys = Array::own(std::vector<double>{1, 0, 0, 0, -2, 1, 0, 0}, {2, 2, 2}),
                            .head = Array::own(std::vector<double>{1}, {1})});
  const RowMatrix start{{6}, {0}}, first{{1}, {0}};
  const auto svm = solve_verified(attention_problems({&task, 1}, optimal_of({&task, 1})), Norm::frobenius(), threads);
  const TrainedRun run = train(task, {.steps = kManySteps}, threads, {.W = start});
  return {distance(run.W, svm.front()), 1 - correlation(run.W, first)};
}

}  // namespace

ClaimResult test_direction(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_own_selection({.n = 6, .T = 8, .d = 10}, 0, claim, settings, threads);
}

ClaimResult test_sequence(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_own_selection({.n = 2, .T = 5, .d = 8, .pattern = QueryPattern::causal}, 0, claim, settings, threads);
}

ClaimResult test_fixed_slope(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_own_selection({.n = 2, .T = 5, .d = 8, .pattern = QueryPattern::causal}, 1, claim, settings, threads);
}

ClaimResult test_global(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 6, .T = 8, .d = 10};
  constexpr Recipe kOneInput{.n = 1, .T = 8, .d = 10};
  Tally tally(claim, settings);
  std::array<std::vector<double>, kStarts.size()> distances;
  std::array<Index, kStarts.size()> missed{};
  Index stuck_runs = 0, predicted = 0;
  std::vector<double> to_others;
  double worst_of_one = 0;
  tally.continues(distances, missed, stuck_runs, predicted, to_others, worst_of_one);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_equal_scores(kRecipe, {settings.seed, first, count});
    const auto best = optimal_of(tasks);
    const auto svm = solve_verified(attention_problems(tasks, best), Norm::frobenius(), threads);
    std::vector<double> worst(tasks.size(), 0);
    std::vector<std::size_t> worst_start(tasks.size(), 0);
    std::vector<RowMatrix> worst_W(tasks.size());
    std::vector<std::vector<Index>> worst_end = best;
    for (std::size_t s = 0; s < kStarts.size(); ++s) {
      const std::vector<Start> starts = far_starts(svm, s, settings.seed, first);
      const auto runs = train_many(tasks, {.steps = kManySteps}, threads, starts);
      const auto selected = selected_by(tasks, runs, threads);
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        const double now = distance(runs[k].W, svm[k]);
        distances[s].push_back(now);
        if (selected[k] != best[k]) {
          const Stuck stuck = explain(tasks[k], best[k], selected[k], runs[k].W, threads);
          ++missed[s];
          ++stuck_runs;
          predicted += stuck.predicted ? 1 : 0;
          to_others.push_back(stuck.to_others);
        }
        if (now < worst[k]) continue;
        worst[k] = now;
        worst_start[k] = s;
        worst_W[k] = starts[k].W;
        worst_end[k] = selected[k];
      }
    }
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      tally.add(tasks[k], worst[k] <= kAligned, worst[k],
                fmt::format("from {}: {}", kStarts[worst_start[k]], far_from(worst[k], worst_end[k])),
                {{"x_W0", Array::own(worst_W[k])}});
    }
    const auto single = draw_equal_scores(kOneInput, {settings.seed, first, count});
    const auto single_svm = solve_verified(attention_problems(single, optimal_of(single)), Norm::frobenius(), threads);
    for (std::size_t s = 0; s < kStarts.size(); ++s) {
      const auto runs =
          train_many(single, {.steps = kManySteps}, threads, far_starts(single_svm, s, settings.seed, first));
      for (std::size_t k = 0; k < single.size(); ++k)
        worst_of_one = std::max(worst_of_one, distance(runs[k].W, single_svm[k]));
    }
  });
  for (std::size_t s = 0; s < kStarts.size() && !distances[s].empty(); ++s) {
    tally.figure(fmt::format("median 1 - correlation from {}", kStarts[s]), median(distances[s]));
    tally.share(fmt::format("share of runs from {} that miss optimal tokens", kStarts[s]), missed[s],
                static_cast<Index>(distances[s].size()));
  }
  tally.share("share of those whose missed tokens the SVM of the other queries puts out of reach", predicted,
              stuck_runs);
  if (stuck_runs > 0)
    tally.figure("median 1 - correlation of those with the SVM of the other queries", median(to_others));
  tally.figure("one input: largest 1 - correlation", worst_of_one);
  if (tally.ended()) {
    const TwoInputs two = run_two_inputs(threads);
    tally.figure("two-input example: 1 - correlation with p^mm", two.to_svm);
    tally.figure("two-input example: 1 - correlation with the first input's difference", two.to_first);
  }
  return std::move(tally).result();
}

ClaimResult test_first_gradient(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 3, .T = 4, .d = 24};
  constexpr Index kMostDraws = 16;   // per task wanted
  constexpr double kThinnest = 0.1;  // smallest row of the gradient's direction that is clear of zero
  constexpr double kHeadStart = 20;  // logits by which every optimal token begins ahead
  // The start is up to 200 away from zero; the run must grow far beyond that.
  constexpr double kLongStep = 0.5;
  Tally tally(claim, settings);
  Index draws = 0, met = 0;
  std::vector<double> distances;
  tally.continues(draws, met, distances);
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    std::vector<AttentionTask> tasks;
    std::vector<Start> starts;
    for (AttentionTask& task : draw_tasks(kRecipe, {settings.seed, first, count}, threads)) {
      ++draws;
      const std::vector<Index> best = optimal_of({&task, 1}).front();
      const MarginProblem problem = MarginProblem::attention(task, Selection::single(best));
      LossGradient found;
      GradientPass(task, {}, threads).evaluate(RowMatrix::Zero(problem.d(), problem.dz()), task.head(), {}, found);
      const RowMatrix direction = -found.W.direction / found.W.direction.norm();
      const double thinnest = smallest_row(problem, direction);
      if (thinnest < kThinnest) continue;
      ++met;
      starts.push_back({.W = kHeadStart / thinnest * direction});
      tasks.push_back(std::move(task));
    }
    const auto best = optimal_of(tasks);
    const auto svm = solve_verified(attention_problems(tasks, best), Norm::frobenius(), threads);
    const auto runs = train_many(tasks, {.step = kLongStep, .steps = 2 * kManySteps}, threads, starts);
    const auto selected = selected_by(tasks, runs, threads);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      const double now = distance(runs[k].W, svm[k]);
      distances.push_back(now);
      tally.add(tasks[k], selected[k] == best[k] && now <= kAligned, now, far_from(now, selected[k]),
                {{"x_W0", Array::own(starts[k].W)}});
    }
  });
  tally.share("share of draws whose first gradient separates the optimal tokens", met, draws);
  tally.figure("median 1 - correlation", median(distances));
  return std::move(tally).result();
}

ClaimResult test_kq_bias(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 6, .T = 8, .d = 10};
  constexpr Index kShort = 5000;
  struct Means {
    Mean frobenius, nuclear;
    auto numbers() { return std::tie(frobenius, nuclear); }
  };
  Means factored, whole;
  Index reversed = 0, runs_done = 0;
  Tally tally(claim, settings);
  tally.continues(factored, whole, reversed, runs_done);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kRecipe, {settings.seed, first, count}, threads);
    for (const Parametrization param : {Parametrization::KQ, Parametrization::W}) {
      const bool kq = param == Parametrization::KQ;
      const auto runs = train_many(tasks,
                                   {.param = param,
                                    .steps = kShort,
                                    .init = Init::random,
                                    .seed = settings.seed,
                                    .instance = static_cast<std::uint32_t>(first)},
                                   threads);
      const auto selected = selected_by(tasks, runs, threads);
      const auto problems = attention_problems(tasks, selected);
      const auto fro = solve_verified(problems, Norm::frobenius(), threads);
      const auto nuc = solve_verified(problems, Norm::nuclear(), threads);
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        const double to_fro = distance(runs[k].W, fro[k]), to_nuc = distance(runs[k].W, nuc[k]);
        (kq ? factored : whole).frobenius.add(1 - to_fro);
        (kq ? factored : whole).nuclear.add(1 - to_nuc);
        if (kq) {
          tally.add(tasks[k], to_nuc < to_fro, to_nuc - to_fro,
                    fmt::format("1 - correlation is {:.3g} with the nuclear and {:.3g} with the Frobenius solution",
                                to_nuc, to_fro),
                    {{"x_K", Array::own(runs[k].K)}, {"x_Q", Array::own(runs[k].Q)}});
        } else {
          ++runs_done;
          reversed += to_fro < to_nuc ? 1 : 0;
        }
      }
    }
  });
  tally.figure("(K,Q) runs: mean correlation with the nuclear solution", factored.nuclear.value());
  tally.figure("(K,Q) runs: mean correlation with the Frobenius solution", factored.frobenius.value());
  tally.figure("W runs: mean correlation with the nuclear solution", whole.nuclear.value());
  tally.figure("W runs: mean correlation with the Frobenius solution", whole.frobenius.value());
  tally.share("share of W runs that are closer to the Frobenius solution", reversed, runs_done);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
