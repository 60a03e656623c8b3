#include "attsvm/hierarchy.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>

#include "attsvm/theory.h"
#include "base/decompositions.h"
#include "base/limits.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "theory/instances.h"
#include "theory/sign_flips.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::uint32_t kNullStream = 0x5c0e0400;

Eigen::MatrixXd axes_of(const Eigen::MatrixXd& moment) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(moment).eigenvectors();
}

/// Axes of the tokens about the mean of their sequence, because only differences of keys matter, and of the queries
/// about zero.
struct LayerAxes {
  Eigen::MatrixXd keys, queries;

  explicit LayerAxes(const AttentionTask& task) {
    const Index d = task.key_size();
    Eigen::MatrixXd of_keys = Eigen::MatrixXd::Zero(d, d), of_queries = of_keys;
    for (Index s = 0; s < task.sequences(); ++s) {
      RowMatrix X = task.keys(s);
      X.rowwise() -= X.colwise().mean().eval();
      of_keys += X.transpose() * X;
    }
    for (Index i = 0; i < task.queries(); ++i) of_queries += task.query(i) * task.query(i).transpose();
    keys = axes_of(of_keys);
    queries = axes_of(of_queries);
  }
};

/// Whether all heads have to stop; shared by the threads that judge them.
class JudgingStop {
 public:
  JudgingStop(const HierarchySettings& settings, Index solves)
      : settings_(settings), limit_(settings.time_limit), solves_(solves) {}

  bool now() {
    if (stopped_) return true;
    if (limit_.over()) stopped_ = true;
    if (settings_.progress) {
      const std::lock_guard lock(mutex_);
      stopped_ = stopped_ || settings_.progress({.done = done_, .solves = solves_});
    }
    return stopped_;
  }
  void count() { ++done_; }
  bool possible() const { return settings_.time_limit > 0 || settings_.progress; }

 private:
  const HierarchySettings& settings_;
  TimeLimit limit_;
  Index solves_;
  std::atomic<Index> done_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
};

/// W beside the SVM of what it selects.
struct OwnMargin {
  std::vector<Index> selected;
  double attention = 1;
  MarginProblem problem;
  MarginSolution solution;  ///< its status is `limit` only after a stop
};

OwnMargin own_margin(const AttentionTask& task, const RowMatrix& W, JudgingStop& stop, Threads& alone) {
  const AttentionMap map = attention_map(task, W, alone);
  OwnMargin own{.selected = map.selected,
                .problem = MarginProblem::attention(task, Selection::single(map.selected)),
                .solution = {}};
  for (Index i = 0; i < task.queries(); ++i) own.attention = std::min(own.attention, map.weight(i));
  if (stop.now()) {
    own.solution.W.setZero(W.rows(), W.cols());
    return own;
  }
  MarginSolver solver(alone);
  SolveSettings solves;
  if (stop.possible()) solves.progress = [&](const SolveProgress&) { return stop.now(); };
  own.solution = solver.solve(own.problem, solves);
  stop.count();
  return own;
}

HeadMargin judge(const AttentionTask& read, std::span<const StackRecord> records, Index layer, Index head,
                 const HierarchySettings& settings, JudgingStop& stop, Threads& alone) {
  const Stack& last = records.back().stack;
  const std::size_t k = last.at(layer, head);
  OwnMargin own = own_margin(read, last.W[k], stop, alone);
  HeadMargin found{.layer = layer,
                   .head = head,
                   .queries = read.queries(),
                   .attention = own.attention,
                   .selected = std::move(own.selected),
                   .complete = own.solution.status != MarginStatus::limit};
  for (const StackRecord& record : records) {
    const RowMatrix& W = record.stack.W[k];
    found.correlation.push_back(own.solution.status == MarginStatus::optimal ? correlation(W, own.solution.W) : kNaN);
    found.rho.push_back(margin_share(own.problem, own.solution, W));
  }
  found.last_correlation.value = found.correlation.back();
  found.last_rho.value = found.rho.back();
  found.solution = std::move(own.solution);
  if (!found.complete || found.solution.W.isZero(0)) return found;  // no rows: nothing to be compared
  const LayerAxes axes(read);
  const Eigen::MatrixXd inner = axes.keys.transpose() * last.W[k] * axes.queries;
  for (Index draw = 0; draw < settings.null_draws; ++draw) {
    const Random random(settings.seed, static_cast<std::uint32_t>(k), kNullStream + static_cast<std::uint32_t>(draw));
    const RowMatrix W = sign_flipped(axes.keys, inner, axes.queries, random);
    const OwnMargin null = own_margin(read, W, stop, alone);
    found.complete = found.complete && null.solution.status != MarginStatus::limit;
    if (!found.complete) break;
    if (null.solution.status != MarginStatus::optimal) continue;
    found.last_correlation.null.push_back(correlation(W, null.solution.W));
    found.last_rho.null.push_back(margin_share(null.problem, null.solution, W));
  }
  return found;
}

}  // namespace

double BesideNull::mean() const {
  return std::accumulate(null.begin(), null.end(), 0.0) / static_cast<double>(null.size());
}

double BesideNull::share() const {
  const auto below = std::count_if(null.begin(), null.end(), [&](double one) { return one < value; });
  return static_cast<double>(below) / static_cast<double>(null.size());
}

std::vector<HeadMargin> hierarchy(const AttentionTask& task, std::span<const StackRecord> records,
                                  const HierarchySettings& settings, Threads& threads) {
  if (records.empty()) refuse("the run has no records; must have at least one");
  if (settings.null_draws < 0) refuse("null draws = {}; must be at least 0", settings.null_draws);
  require_time_limit(settings.time_limit);
  const Stack& last = records.back().stack;
  const std::vector<AttentionTask> read = layer_tasks(task, last, settings.askers, threads);
  std::vector<HeadMargin> heads(last.W.size());
  JudgingStop stop(settings, std::ssize(heads) * (1 + settings.null_draws));
  for_each_alone(std::ssize(heads), threads, [&](std::size_t k, Threads& alone) {
    const Index layer = static_cast<Index>(k) / last.heads, head = static_cast<Index>(k) % last.heads;
    heads[k] = judge(read[static_cast<std::size_t>(layer)], records, layer, head, settings, stop, alone);
  });
  return heads;
}

}  // namespace attsvm
