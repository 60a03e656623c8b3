#pragma once

#include <functional>
#include <optional>
#include <string>

#include "attsvm/gradient.h"
#include "attsvm/trajectory.h"

namespace attsvm {

enum class Parametrization : std::uint8_t {
  W,   ///< W itself
  KQ,  ///< W = K Qᵀ
  p,   ///< W with dz = 1
};

enum class Optimizer : std::uint8_t {
  gd,      ///< θ ← θ − step·g
  ngd,     ///< θ ← θ − step·g/(‖g‖_F + ε), each array with its own norm
  polyak,  ///< θ ← θ − step·(L − L*)/‖g‖²·g, ‖g‖ over all arrays; linear heads that are not trained
  mirror,  ///< sign(θ)|θ|^{P−1} ← the same − step·g, entry by entry
  adam,    ///< decay .9 and .999, ε = 1e-8
};

enum class Schedule : std::uint8_t {
  constant,
  sqrt,    ///< step/√(1+k) at step k
  cosine,  ///< step·(1 + cos(πk/steps))/2
};

enum class Init : std::uint8_t {
  usual,  ///< zero for W and p, random for (K,Q)
  zero,
  random,  ///< uniform: W and K in ±1/√d, Q in ±1/√dz
};

std::string_view name_of(Parametrization param);
std::string_view name_of(Optimizer optimizer);
std::string_view name_of(Schedule schedule);

struct TrainProgress {
  Index step = 0;
  double loss = 0, norm = 0;  ///< of the point before the step; the loss is that of the minibatch
};

struct TrainSettings {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of thought
  Parametrization param = Parametrization::W;
  bool joint = false;  ///< train the head's v too (output weights of a hidden layer; B and λ stay)
  Index width = 0;     ///< columns of K and Q; 0: min(d,dz)
  Optimizer optimizer = Optimizer::ngd;
  double power = 2;        ///< P of mirror descent, above 1
  bool normalize = false;  ///< mirror descent: with g/(‖g‖_F + ε) instead of g
  double step = 0.1;
  Index steps = 2000;
  Schedule schedule = Schedule::constant;
  double epsilon = 0;                    ///< added to the norm of a gradient
  std::optional<double> head_epsilon{};  ///< the same for v; left out: epsilon
  double ridge = 0;         ///< weight of ‖K‖² + ‖Q‖² in what is minimised; not in the reported loss
  double weight_decay = 0;  ///< θ shrinks by the factor 1 − step·weight_decay at every step
  double dropout = 0;       ///< on the attention map while training, 0 ≤ dropout < 1
  Index batch = 0;          ///< queries a step, drawn without repetition epoch by epoch; 0: all
  Loss loss = Loss::logistic;
  Arithmetic arithmetic = Arithmetic::exact;
  Init init = Init::usual;
  std::uint64_t seed = 0;      ///< of start, minibatches and dropout
  std::uint32_t instance = 0;  ///< tells the runs of a sweep apart
  RecordPlan record{};
  double stop_direction = 0;  ///< stop once W/‖W‖ moved by at most this while the steps doubled, and by no more than
                              ///< in the doubling before; 0: never
  std::function<bool(const TrainProgress&)> progress{};  ///< called before every step; true stops the run
  /// Told the number of steps taken before every step; true stops. Costs less than `progress`, which needs loss and
  /// norm. train_many asks from several threads at once.
  std::function<bool(Index steps)> stop{};
};

/// The settings that make a run what it is, in words: "W, ngd, step 0.1, 2000 steps, logistic loss, exact arithmetic,
/// seed 0", then whatever differs from its default.
std::string words_of(const TrainSettings& settings);

/// Where a run begins, where that is not drawn: arrays that are empty follow TrainSettings::init.
struct Start {
  RowMatrix W{}, K{}, Q{};
  Eigen::VectorXd v{};  ///< replaces the task's head, trained or not
};

enum class TrainStop : std::uint8_t {
  finished,       ///< all steps were taken
  zero_gradient,  ///< the gradient is exactly zero: no step would move; records still due repeat this point
  direction,      ///< stop_direction was met; records still due repeat this point
  overflow,       ///< the next point would overflow; the run holds the last one that does not
  asked,          ///< the progress callback said so; the run can go on from its state
};

std::string_view name_of(TrainStop stop);

/// A run: its last point and what was recorded on the way.
struct TrainedRun {
  TrainStop stop = TrainStop::finished;
  Index steps = 0;                                            ///< taken
  RowMatrix W;                                                ///< (d,dz)
  RowMatrix K, Q;                                             ///< (d,r), (dz,r); (K,Q) runs only
  Head head;                                                  ///< with the trained v
  double loss = 0, log_loss = 0, norm = 0, log_gradient = 0;  ///< as in Record, at the last point
  std::vector<Record> records;
};

/// One run, step by step, with a state that can be stored and taken up again to the same bits.
class Trainer {
 public:
  /// InputError names the setting or array that cannot be used. Task and threads must outlive the trainer.
  Trainer(const AttentionTask& task, const TrainSettings& settings, const Start& start, Threads& threads);
  ~Trainer();

  /// Trains until something stops it; `keep` gets each record as it falls due, ascending in step.
  TrainStop run(const std::function<void(const Record&)>& keep);

  Index step() const;
  const Head& head() const;   ///< at the present point
  TrainedRun result() const;  ///< the present point, without records

  /// All numbers that the rest of the run depends on, and the way back. InputError if their count does not fit.
  std::vector<double> state() const;
  void restore(std::span<const double> state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

TrainedRun train(const AttentionTask& task, const TrainSettings& settings, Threads& threads, const Start& start = {});

/// Trains many small tasks at once. Run k has the numbers of train() with instance = settings.instance + k. `starts`
/// is empty or has one entry a task. The progress callback is not called; runs that `stop` ends have TrainStop::asked.
std::vector<TrainedRun> train_many(std::span<const AttentionTask> tasks, const TrainSettings& settings,
                                   Threads& threads, std::span<const Start> starts = {});

}  // namespace attsvm
