#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attsvm/margin.h"
#include "attsvm/task.h"
#include "attsvm/threads.h"
#include "attsvm/train.h"

namespace attsvm::internal {

// Where runs come to rest that weight decay, dropout or label smoothing keeps from diverging, and where minibatches
// lead them.

inline constexpr std::array kDecays{1e-1, 1e-2, 1e-3, 1e-4};  ///< of gradient descent
inline constexpr std::array kDropouts{0.1, 0.3, 0.5};
inline constexpr std::array kSmoothings{0.3, 0.6, 0.7, 0.8, 0.9};
/// Of gradient descent; tokens are unit vectors, so that runs stay stable.
inline constexpr double kDecayStep = 4, kDropoutStep = 4, kSmoothingStep = 4, kBatchStep = 4;
inline constexpr Index kDropoutSteps = 20'000, kSmoothingSteps = 100'000;

/// Steps of this size with this decay: as many as shrink what is left of the way by e^−40.
Index decayed_steps(double step, double decay);

/// A run with weight decay.
struct DecayedRun {
  RowMatrix W;
  double norm = 0;     ///< ‖W‖_F
  double to_path = 0;  ///< 1 − correlation with the minimiser of the loss over the ball of this norm
};

/// Trains W from zero. The minimiser is the best of four starts drawn from the seed and the ray of W^mm.
DecayedRun run_with_decay(const AttentionTask& task, Optimizer optimizer, double step, double decay, std::uint64_t seed,
                          Threads& alone);

/// Gradient descent from zero with decay on one query at a time, with four times as many steps that fall along a
/// cosine.
DecayedRun run_batches_with_decay(const AttentionTask& task, double decay, std::uint64_t seed, std::uint32_t instance,
                                  Threads& alone);

/// Where normalized steps on one query at a time turn W: every query is moved equally far, whatever its margin. So W is
/// Σ_i of unit matrices h_i z_iᵀ/(‖h_i‖‖z_i‖), where h_i is a convex combination of the query's rows of least value.
/// That is the solution of a soft margin with penalties 1/(‖h_i‖‖z_i‖), all so small that no query gets its margin.
/// Found by iteration over the penalties; zero if that does not settle. `problem` has one group per query.
RowMatrix single_query_limit(const MarginProblem& problem, Threads& threads);

/// The output yf that has the least loss under label smoothing.
double smoothed_aim(double smoothing);

/// A run of gradient descent from zero under label smoothing; the lists have one entry per query.
struct SmoothedRun {
  RowMatrix W;
  std::vector<double> output, limit;  ///< yf, and the score nearest to the aim that attention can give
  std::vector<bool> stuck;            ///< the output is off by more than kSmoothedClose, and saturated at a token
  double off = 0;                     ///< largest difference between output and limit
};

inline constexpr double kSmoothedClose = 0.01;

SmoothedRun run_with_smoothing(const AttentionTask& task, double smoothing, Threads& alone);

/// The attention of one query that has the least expected loss under dropout, over all of the simplex. The expected
/// loss is convex there, and summed over all 2^T choices of dropped tokens.
struct DropoutLimit {
  Eigen::VectorXd attention;
  bool saturates = false;          ///< all attention on one token
  double loss = 0, even_loss = 0;  ///< expected loss there, and with equal attention to all tokens
};

/// `scores`: label times score of each token. Logistic loss.
DropoutLimit dropout_limit(const Eigen::VectorXd& scores, double dropout);

/// A run of gradient descent with dropout; `largest` and `limits` have one entry per query.
struct DropoutRun {
  RowMatrix W;
  std::vector<double> largest;       ///< attention of the selected token
  std::vector<DropoutLimit> limits;  ///< of the same query
  double excess = 0;                 ///< expected loss above its least value, as a share of what equal attention has
};

/// Gradient descent on W from zero, whose step falls along a cosine.
DropoutRun run_with_dropout(const AttentionTask& task, double dropout, std::uint64_t seed, std::uint32_t instance,
                            Threads& alone);

}  // namespace attsvm::internal
