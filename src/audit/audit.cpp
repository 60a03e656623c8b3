#include "attsvm/audit.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "attsvm/theory.h"
#include "audit/activations.h"
#include "audit/audit_data.h"
#include "audit/kinds.h"
#include "audit/null.h"
#include "audit/pairs.h"
#include "base/blas.h"
#include "base/time_limit.h"

namespace attsvm {

using namespace internal;

namespace {

Quantiles quantiles_of(std::vector<double> numbers) {
  std::erase_if(numbers, [](double number) { return std::isnan(number); });  // radii of queries that are zero
  if (numbers.empty()) return {std::nan(""), std::nan(""), std::nan("")};
  std::sort(numbers.begin(), numbers.end());
  const auto at = [&](double share) {
    return numbers[static_cast<std::size_t>(share * static_cast<double>(numbers.size() - 1) + 0.5)];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

/// The smallest gap over the Frobenius norm of a head: the identity in head space, or a null, which has its norm.
double gap_over_norm(const std::vector<Choice>& choices, Index d) {
  double least = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) least = std::min(least, choice.gap);
  return least / std::sqrt(static_cast<double>(d));
}

/// One view of one head, audited in steps: what is cheap first, so that a time limit cuts off the expensive end.
class ViewAuditor {
 public:
  ViewAuditor(const HeadSet& heads, Index head, bool hidden, const AuditSettings& settings)
      : view_(heads, head, hidden), settings_(settings), instance_(null_instance(head, hidden)) {
    result.hidden = hidden;
    result.choosing = static_cast<Index>(view_.choices().size());
    result.kinds = kinds_of(view_);
    result.uncertain = least_certain(view_);
    const Split split = split_of(view_, settings);
    candidates_ = split.fit;
    fit_ = without_smallest(choices_at(view_, split.fit), settings.drop, settings.queries);
    const auto held_out = without_smallest(choices_at(view_, split.held_out), settings.drop, settings.queries);
    result.queries = static_cast<Index>(fit_.size());
    result.held_out = static_cast<Index>(held_out.size());
    describe_choices();
    if (fit_.empty()) return;
    activations_ = activations_of(view_, fit_);
    const RankCurve curve = rank_curve(view_, activations_, held_out);
    result.singular_values = curve.singular_values;
    result.agreement = curve.agreement;
    result.r90 = rank_for(curve.agreement, 0.9);
    result.r95 = rank_for(curve.agreement, 0.95);
    problem_.emplace(head_problem(view_, fit_));
    rows_.emplace(MarginProblem::attention(problem_->task, *problem_->task.select()));
    result.rows = rows_->rows();
    draw_null_gaps();
  }

  bool has_choices() const { return problem_.has_value(); }
  double sink_weight() const { return view_.sink_weight(); }

  void solve_frobenius(MarginSolver& solver, const SolveSettings& settings) {
    const MarginSolution& solution = solver.solve(*rows_, settings);
    result.frobenius = facts(solution);
    if (solution.dual.size() > 0 && solution.dual.sum() > 0)
      describe_support(view_.heads(), *problem_, *rows_, solution.dual, result);
  }

  void solve_nuclear(MarginSolver& solver, const SolveSettings& settings) {
    const MarginSolution& solution = solver.solve(*rows_, settings);
    result.nuclear = facts(solution);
    result.nuclear.rank = solution.rank.rank;
    result.nuclear.rank_certified = solution.rank.certified;
    const Index r = solution.K.cols();
    for (Index j = 0; j < r; ++j)
      result.nuclear.singular_values.push_back(solution.K.col(j).norm() * solution.Q.col(j).norm());
    std::sort(result.nuclear.singular_values.rbegin(), result.nuclear.singular_values.rend());
    // rank(W) ≥ (‖W‖_*/‖W‖_F)², and no W that keeps the choices has a nuclear norm below the bound.
    const double ratio = result.nuclear.dual_objective / result.frobenius.objective;
    result.rank_bound = result.frobenius.objective > 0 && std::isfinite(ratio) ? ratio * ratio : 0;
  }

  /// Solves the margin problem of draw k of the null.
  void solve_null(Index k, MarginSolver& solver, const SolveSettings& settings) {
    const std::vector<Choice> choices = null_choices(k);
    if (choices.empty()) return;
    const HeadProblem problem = head_problem(view_, choices);
    const MarginSolution& solution =
        solver.solve(MarginProblem::attention(problem.task, *problem.task.select()), settings);
    if (solution.status != MarginStatus::optimal) return;
    null_shares_.push_back(gap_over_norm(choices, view_.heads().size()) * solution.objective);
  }

  void finish() { result.rho = null_facts(result.frobenius.rho, null_shares_); }

  ViewAudit result;

 private:
  /// The choices of draw k of the null, without those of smallest gap.
  std::vector<Choice> null_choices(Index k) const {
    const RowMatrix W = null_head(activations_, settings_.seed, instance_, static_cast<std::uint32_t>(k));
    return choices_of(view_, candidates_, W, settings_);
  }

  void draw_null_gaps() {
    std::vector<double> gaps;
    for (Index k = 0; k < settings_.nulls; ++k) {
      const std::vector<Choice> choices = null_choices(k);
      if (!choices.empty()) gaps.push_back(gap_over_norm(choices, view_.heads().size()));
    }
    result.gap_over_norm = null_facts(gap_over_norm(fit_, view_.heads().size()), gaps);
  }

  void describe_choices() {
    std::vector<double> gaps, weights, radii;
    for (const Choice& choice : view_.choices()) {
      gaps.push_back(choice.gap);
      weights.push_back(choice.weight);
      radii.push_back(choice.gap / (2 * view_.queries().row(choice.query).norm()));
    }
    const double spread = spread_of_keys();
    for (double& radius : radii) radius /= spread;
    result.gap = quantiles_of(std::move(gaps));
    result.weight = quantiles_of(std::move(weights));
    result.radius = quantiles_of(std::move(radii));
  }

  /// Root mean square distance of keys from their mean.
  double spread_of_keys() const {
    const RowMatrix& keys = view_.keys();
    return std::sqrt((keys.rowwise() - keys.colwise().mean()).squaredNorm() / static_cast<double>(keys.rows()));
  }

  MarginFacts facts(const MarginSolution& solution) const {
    const double size = solution.norm.is_nuclear() ? std::sqrt(static_cast<double>(view_.heads().size())) : 1.0;
    return {.status = std::string(name_of(solution.status)),
            .objective = solution.objective,
            .dual_objective = solution.dual_objective,
            .rho = result.gap_over_norm.value / size * solution.objective,
            .support = solution.support};
  }

  HeadView view_;
  const AuditSettings& settings_;
  std::uint32_t instance_;
  std::vector<Index> candidates_;  // places of view_.choices() that margin problems choose from
  std::vector<Choice> fit_;
  Activations activations_;
  std::optional<HeadProblem> problem_;
  std::optional<MarginProblem> rows_;
  std::vector<double> null_shares_;
};

/// Audits one head. `stop` is asked during solves and between them.
class HeadAuditor {
 public:
  HeadAuditor(const HeadSet& heads, Index head, const AuditSettings& settings, std::function<bool(double)> stop)
      : heads_(heads), head_(head), settings_(settings), stop_(std::move(stop)), limit_(settings.time_limit) {}

  HeadAudit run() {
    HeadAudit audit{.layer = heads_.layer(head_), .head = heads_.number(head_), .difference = heads_.difference(head_)};
    Threads one(1);
    MarginSolver solver(one);
    std::vector<ViewAuditor> views;
    views.emplace_back(heads_, head_, false, settings_);
    if (heads_.any_sink()) views.emplace_back(heads_, head_, true, settings_);
    audit.sink_weight = views.front().sink_weight();
    const auto parts = static_cast<double>(2 * static_cast<Index>(views.size()) + settings_.nulls);
    double done = 0;
    const auto each = [&](const Norm& norm, double tolerance, auto&& step) {
      for (ViewAuditor& view : views) {
        if (view.has_choices() && !over(done / parts)) step(view, solving(norm, tolerance, done / parts));
        ++done;
      }
    };
    each(Norm::frobenius(), settings_.tolerance,
         [&](ViewAuditor& view, const SolveSettings& how) { view.solve_frobenius(solver, how); });
    each(Norm::nuclear(), settings_.tolerance,
         [&](ViewAuditor& view, const SolveSettings& how) { view.solve_nuclear(solver, how); });
    ViewAuditor& own = views.front();
    for (Index k = 0; k < settings_.nulls && own.has_choices() && !over(done / parts); ++k, ++done)
      own.solve_null(k, solver, solving(Norm::frobenius(), settings_.null_tolerance, done / parts));
    for (ViewAuditor& view : views) {
      view.finish();
      audit.views.push_back(std::move(view.result));
    }
    audit.complete = !over(1);
    audit.seconds = limit_.seconds();
    return audit;
  }

 private:
  bool over(double share) {
    over_ = over_ || limit_.over() || stop_(share);
    return over_;
  }

  SolveSettings solving(const Norm& norm, double tolerance, double share) {
    return {.norm = norm,
            .tolerance = tolerance,
            .time_limit = settings_.time_limit > 0 ? std::max(1e-3, settings_.time_limit - limit_.seconds()) : 0,
            .progress = [this, share](const SolveProgress&) { return stop_(share); }};
  }

  const HeadSet& heads_;
  Index head_;
  const AuditSettings& settings_;
  std::function<bool(double)> stop_;
  TimeLimit limit_;
  bool over_ = false;
};

void require_settings(const HeadSet& heads, const AuditSettings& settings) {
  for (const Index head : settings.only) {
    if (head < 0 || head >= heads.heads()) refuse("head = {}; must be from 0 to {}", head, heads.heads() - 1);
  }
  if (settings.queries < 1) refuse("queries = {}; must be at least 1", settings.queries);
  if (!(settings.drop >= 0 && settings.drop < 1)) refuse("drop = {}; must be at least 0 and below 1", settings.drop);
  if (settings.nulls < 0) refuse("nulls = {}; must be at least 0", settings.nulls);
  for (const double tolerance : {settings.tolerance, settings.null_tolerance}) {
    if (!(tolerance > 0)) refuse("tolerance = {}; must be above 0", tolerance);
  }
  require_time_limit(settings.time_limit);
}

}  // namespace

std::vector<Index> internal::wanted_heads(const HeadSet& heads, const AuditSettings& settings) {
  if (!settings.only.empty()) return settings.only;
  std::vector<Index> all(static_cast<std::size_t>(heads.heads()));
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

Audit audit(const HeadSet& heads, const AuditSettings& settings, Threads& threads) {
  require_settings(heads, settings);
  const SingleThreadBlas single;
  const std::vector<Index> wanted = internal::wanted_heads(heads, settings);
  const auto count = static_cast<Index>(wanted.size());
  Audit result;
  result.heads.resize(wanted.size());
  std::mutex mutex;
  std::vector<double> shares(result.heads.size(), 0.0);
  Index done = 0;
  bool stopped = false;
  const auto report = [&](std::size_t head, double share) {
    const std::lock_guard lock(mutex);
    if (share >= 1 && shares[head] < 1) ++done;
    shares[head] = share;
    double sum = 0;
    for (const double one : shares) sum += one / static_cast<double>(shares.size());
    if (settings.progress && !stopped) stopped = settings.progress({.heads = count, .done = done, .share = sum});
    return stopped;
  };
  const auto keep = [&](std::size_t at) {
    const std::lock_guard lock(mutex);
    const bool finished = result.heads[at].complete || !stopped;  // else a stop has cut it short
    if (settings.journal != nullptr && finished) settings.journal->keep(wanted[at], result.heads[at]);
  };
  for (std::size_t at = 0; settings.journal != nullptr && at < wanted.size(); ++at) {
    const HeadAudit* known = settings.journal->find(wanted[at]);
    if (known == nullptr) continue;
    result.heads[at] = *known;
    shares[at] = 1;
    ++done;
  }
  threads.for_each(count, [&](Index place) {
    const auto at = static_cast<std::size_t>(place);
    const Index head = wanted[at];
    HeadAudit& one = result.heads[at];
    if (shares[at] == 1) return;
    one = {.layer = heads.layer(head), .head = heads.number(head), .difference = heads.difference(head)};
    if (report(at, 0)) return;
    one = HeadAuditor(heads, head, settings, [&](double share) { return report(at, std::min(share, 0.999)); }).run();
    keep(at);
    report(at, 1);
  });
  result.complete = std::all_of(result.heads.begin(), result.heads.end(), [](const auto& one) { return one.complete; });
  return result;
}

AttentionTask head_task(const HeadSet& heads, Index head, bool hide_sinks, AuditSettings settings) {
  settings.only = {head};
  require_settings(heads, settings);
  const HeadView view(heads, head, hide_sinks);
  const Split split = split_of(view, settings);
  return head_problem(view, without_smallest(choices_at(view, split.fit), settings.drop, settings.queries)).task;
}

std::vector<KindShare> head_kinds(const HeadSet& heads, Index head, bool hide_sinks) {
  require_settings(heads, {.only = {head}});
  return kinds_of(HeadView(heads, head, hide_sinks));
}

NullFacts head_rho(const HeadSet& heads, Index head, bool hide_sinks, const Norm& norm, AuditSettings settings,
                   Threads& threads) {
  settings.only = {head};
  require_settings(heads, settings);
  const HeadView view(heads, head, hide_sinks);
  const std::vector<Index> candidates = split_of(view, settings).fit;
  const RowMatrix identity = RowMatrix::Identity(heads.size(), heads.size());
  MarginSolver solver(threads);
  const auto share = [&](const std::vector<Choice>& choices, const RowMatrix& W) {
    if (choices.empty()) return std::nan("");
    const HeadProblem problem = head_problem(view, choices);
    const MarginProblem rows = MarginProblem::attention(problem.task, *problem.task.select());
    return margin_share(rows, solver.solve(rows, {.norm = norm, .tolerance = settings.null_tolerance}), W);
  };
  const std::vector<Choice> own = choices_of(view, candidates, identity, settings);
  const double value = share(own, identity);
  std::vector<double> draws;
  if (std::isnan(value)) return null_facts(value, draws);
  const Activations activations = activations_of(view, own);
  for (Index k = 0; k < settings.nulls; ++k) {
    const RowMatrix W =
        null_head(activations, settings.seed, null_instance(head, hide_sinks), static_cast<std::uint32_t>(k));
    const double draw = share(choices_of(view, candidates, W, settings), W);
    if (!std::isnan(draw)) draws.push_back(draw);
  }
  return null_facts(value, draws);
}

}  // namespace attsvm
