#include "theory/settling.h"

#include <algorithm>
#include <cmath>

#include "attsvm/theory.h"
#include "theory/instances.h"
#include "train/losses.h"

namespace attsvm::internal {
namespace {

/// The expected loss of one query under dropout, as a function of its attention.
class ExpectedLoss {
 public:
  ExpectedLoss(const Eigen::VectorXd& scores, double dropout) : scores_(scores / (1 - dropout)) {
    const Index T = scores.size();
    for (Index kept = 0; kept < Index{1} << T; ++kept) {
      double chance = 1;
      Eigen::VectorXd mask(T);
      for (Index t = 0; t < T; ++t) {
        mask[t] = (kept >> t & 1) != 0 ? 1 : 0;
        chance *= mask[t] > 0 ? 1 - dropout : dropout;
      }
      masks_.push_back(mask.cwiseProduct(scores_));
      chances_.push_back(chance);
    }
  }

  double value(const Eigen::VectorXd& attention) const {
    double sum = 0;
    for (std::size_t k = 0; k < masks_.size(); ++k) sum += chances_[k] * softplus(-masks_[k].dot(attention));
    return sum;
  }

  Eigen::VectorXd gradient(const Eigen::VectorXd& attention) const {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(attention.size());
    for (std::size_t k = 0; k < masks_.size(); ++k) {
      sum -= chances_[k] / (1 + std::exp(masks_[k].dot(attention))) * masks_[k];
    }
    return sum;
  }

 private:
  Eigen::VectorXd scores_;
  std::vector<Eigen::VectorXd> masks_;  // the scores of the tokens that are kept
  std::vector<double> chances_;
};

/// Trains W, and finds the path's minimiser at the norm that it reaches.
DecayedRun settle(const AttentionTask& task, const TrainSettings& training, std::uint64_t seed, Threads& alone) {
  constexpr Index kStarts = 4;
  const TrainedRun run = train(task, training, alone);
  const RegularizationPath path =
      regularization_path(task, {.radii = {run.norm}, .starts = kStarts, .seed = seed}, alone);
  return {run.W, run.norm, 1 - correlation(run.W, path.points.at(0).W)};
}

/// 1/(‖h‖‖z‖) of every query, h being the combination of its rows that the multipliers give.
std::vector<double> equal_pulls(const MarginProblem& problem, const Eigen::VectorXd& dual) {
  std::vector<double> penalties;
  Eigen::VectorXd delta(problem.d());
  for (const MarginGroup& group : problem.groups()) {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(problem.d());
    for (Index row = group.first_row; row < group.first_row + group.rows; ++row) {
      problem.delta(group, row, delta.data());
      sum += dual[row] * delta;
    }
    const double all = dual.segment(group.first_row, group.rows).sum();
    penalties.push_back(all / (sum.norm() * ConstVector(group.z, problem.dz()).norm()));
  }
  return penalties;
}

/// Penalties in these proportions, so small that no W = A(dual) with them meets a row.
std::vector<double> small_penalties(const MarginProblem& problem, const std::vector<double>& proportions) {
  Eigen::VectorXd delta(problem.d());
  double longest = 0, sum = 0;
  for (const MarginGroup& group : problem.groups()) {
    for (Index row = group.first_row; row < group.first_row + group.rows; ++row) {
      problem.delta(group, row, delta.data());
      longest = std::max(longest, delta.norm() * ConstVector(group.z, problem.dz()).norm());
    }
  }
  for (const double one : proportions) sum += one;
  std::vector<double> penalties;
  penalties.reserve(proportions.size());
  for (const double one : proportions) penalties.push_back(one / (2 * sum * longest * longest));
  return penalties;
}

}  // namespace

Index decayed_steps(double step, double decay) { return std::llround(40 / (step * decay)); }

DecayedRun run_with_decay(const AttentionTask& task, Optimizer optimizer, double step, double decay, std::uint64_t seed,
                          Threads& alone) {
  return settle(task,
                {.optimizer = optimizer,
                 .step = step,
                 .steps = decayed_steps(step, decay),
                 .weight_decay = decay,
                 .init = Init::zero},
                seed, alone);
}

DecayedRun run_batches_with_decay(const AttentionTask& task, double decay, std::uint64_t seed, std::uint32_t instance,
                                  Threads& alone) {
  return settle(task,
                {.optimizer = Optimizer::gd,
                 .step = kBatchStep,
                 .steps = 4 * decayed_steps(kBatchStep, decay),
                 .schedule = Schedule::cosine,
                 .weight_decay = decay,
                 .batch = 1,
                 .init = Init::zero,
                 .seed = seed,
                 .instance = instance},
                seed, alone);
}

RowMatrix single_query_limit(const MarginProblem& problem, Threads& threads) {
  constexpr int kIterations = 400;
  constexpr double kSettled = 1e-9;  // relative change of every penalty
  std::vector<double> pulls(problem.groups().size(), 1);
  MarginSolver solver(threads);
  for (int k = 0; k < kIterations; ++k) {
    const MarginSolution& soft = solver.solve(problem, {.soft = small_penalties(problem, pulls)});
    require_verified(problem, soft);
    const std::vector<double> wanted = equal_pulls(problem, soft.dual);
    double change = 0;
    for (std::size_t i = 0; i < pulls.size(); ++i) {
      change = std::max(change, std::abs(wanted[i] / pulls[i] - 1));
      pulls[i] = std::sqrt(pulls[i] * wanted[i]);  // half of the way: the whole way swings
    }
    if (change <= kSettled) return soft.W;
  }
  return RowMatrix::Zero(problem.d(), problem.dz());
}

double smoothed_aim(double smoothing) { return std::log((2 - smoothing) / smoothing); }

SmoothedRun run_with_smoothing(const AttentionTask& task, double smoothing, Threads& alone) {
  const TrainedRun run = train(task,
                               {.optimizer = Optimizer::gd,
                                .step = kSmoothingStep,
                                .steps = kSmoothingSteps,
                                .label_smoothing = smoothing,
                                .init = Init::zero},
                               alone);
  const AttentionMap map = attention_map(task, run.W, alone);
  constexpr double kSaturated = 0.99;  // attention
  SmoothedRun out{.W = run.W, .output = {}, .limit = {}, .stuck = {}};
  for (Index i = 0; i < task.queries(); ++i) {
    const Eigen::VectorXd scores = task.label(i) * (task.values(task.sequence(i)) * task.head().v);
    out.output.push_back(map.log_weights.row(i).transpose().array().exp().matrix().dot(scores));
    out.limit.push_back(std::clamp(smoothed_aim(smoothing), scores.minCoeff(), scores.maxCoeff()));
    const double off = std::abs(out.output.back() - out.limit.back());
    out.stuck.push_back(off > kSmoothedClose && map.weight(i) > kSaturated);
    out.off = std::max(out.off, off);
  }
  return out;
}

DropoutLimit dropout_limit(const Eigen::VectorXd& scores, double dropout) {
  constexpr Index kIterations = 50'000;
  constexpr double kGap = 1e-10;  // the loss is no further than this above its least value, by convexity
  const Index T = scores.size();
  const ExpectedLoss loss(scores, dropout);
  const Eigen::VectorXd even = Eigen::VectorXd::Constant(T, 1 / static_cast<double>(T));
  DropoutLimit limit{.attention = even, .even_loss = loss.value(even)};
  for (Index t = 0; t < T && !limit.saturates; ++t) {  // a vertex is the minimum if no edge leads down from it
    const Eigen::VectorXd vertex = Eigen::VectorXd::Unit(T, t), slope = loss.gradient(vertex);
    limit.saturates = slope[t] <= slope.minCoeff();
    if (limit.saturates) limit.attention = vertex;
  }
  for (Index k = 0; k < kIterations && !limit.saturates; ++k) {  // mirror descent: attention stays on the simplex
    const Eigen::VectorXd slope = loss.gradient(limit.attention);
    if (slope.dot(limit.attention) - slope.minCoeff() <= kGap) break;
    limit.attention.array() *= (slope.minCoeff() - slope.array()).exp();
    limit.attention /= limit.attention.sum();
  }
  limit.loss = loss.value(limit.attention);
  return limit;
}

DropoutRun run_with_dropout(const AttentionTask& task, double dropout, std::uint64_t seed, std::uint32_t instance,
                            Threads& alone) {
  const TrainedRun run = train(task,
                               {.optimizer = Optimizer::gd,
                                .step = kDropoutStep,
                                .steps = kDropoutSteps,
                                .schedule = Schedule::cosine,
                                .dropout = dropout,
                                .init = Init::zero,
                                .seed = seed,
                                .instance = instance},
                               alone);
  const AttentionMap map = attention_map(task, run.W, alone);
  DropoutRun out{.W = run.W};
  double above = 0, even = 0;
  for (Index i = 0; i < task.queries(); ++i) {
    const Eigen::VectorXd scores = task.label(i) * (task.values(task.sequence(i)) * task.head().v);
    const DropoutLimit limit = dropout_limit(scores, dropout);
    const Eigen::VectorXd attention = map.log_weights.row(i).transpose().array().exp();
    above += ExpectedLoss(scores, dropout).value(attention) - limit.loss;
    even += limit.even_loss - limit.loss;
    out.largest.push_back(map.weight(i));
    out.limits.push_back(limit);
  }
  out.excess = above / even;
  return out;
}

}  // namespace attsvm::internal
