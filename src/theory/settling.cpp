#include "theory/settling.h"

#include <cmath>

#include "attsvm/theory.h"
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

}  // namespace

Index decayed_steps(double step, double decay) { return std::llround(40 / (step * decay)); }

DecayedRun run_with_decay(const AttentionTask& task, Optimizer optimizer, double step, double decay, std::uint64_t seed,
                          Threads& alone) {
  constexpr Index kStarts = 4;
  const TrainedRun run = train(task,
                               {.optimizer = optimizer,
                                .step = step,
                                .steps = decayed_steps(step, decay),
                                .weight_decay = decay,
                                .init = Init::zero},
                               alone);
  const RegularizationPath path =
      regularization_path(task, {.radii = {run.norm}, .starts = kStarts, .seed = seed}, alone);
  return {run.W, run.norm, 1 - correlation(run.W, path.points.at(0).W)};
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
