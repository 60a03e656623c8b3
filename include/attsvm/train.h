#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/array.h"
#include "attsvm/norm.h"
#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm {

/// The loss ℓ(u) of a query, u = y_i f_i: label times output. In a next-token task u = log(p/(1−p)), where p is the
/// attention on all copies of the label; its logistic loss is −log p.
enum class Loss : std::uint8_t {
  logistic,     ///< ℓ(u) = log(1 + e^{−u})
  exponential,  ///< ℓ(u) = e^{−u}
  linear,       ///< ℓ(u) = −u
};

std::string_view name_of(Loss loss);  ///< the name that files, JSON and messages use

/// How loss and gradients are computed.
enum class Arithmetic : std::uint8_t {
  /// Double arithmetic in the log domain: gradients keep their direction however far the softmax has saturated, because
  /// nothing underflows. "Exact" is the name that users see; it is not rational arithmetic, and results are rounded.
  exact,
  /// Double arithmetic as in deep-learning frameworks: where the softmax saturates, gradients underflow or are noise.
  plain,
};

std::string_view name_of(Arithmetic arithmetic);  ///< the name that files, JSON and messages use

/// The attention weights s_it of every query i.
struct AttentionMap {
  /// (q,T) log s_it, T the longest sequence; −infinity for tokens that the query does not see. Empty for next-token
  /// tasks, whose sequences may be many. With many heads (H·q,T), one head after another; the next two are alike.
  RowMatrix log_weights;
  std::vector<Index> selected;        ///< (q) argmax_t s_it, the lowest index among ties
  std::vector<double> label_weights;  ///< (q) Σ s_it over the copies of the label; next-token tasks only, else empty

  double weight(Index query) const;  ///< s of the selected token of the query; next-token tasks: label_weights
};

/// The attention weights at W, (d,dz), or (H·d,dz) with the weights of H heads one under the other.
AttentionMap attention_map(const AttentionTask& task, const RowMatrix& W, Threads& threads);

/// The mean over all queries i of s_it at W, t = tokens[i]; for next-token tasks, of the weight of all copies of the
/// label. With many heads the mean over them too: W and `tokens` are as in attention_map().
double mean_weight(const AttentionTask& task, const RowMatrix& W, std::span<const Index> tokens, Threads& threads);

/// The steps after which a run records its point.
struct RecordPlan {
  std::vector<Index> at{};  ///< steps, ascending; used if not empty
  Index every = 0;  ///< records after 0, every, 2·every, … steps; 0 with `at` empty: the first and the last point
  bool ending =
      false;  ///< files also hold the point at which a run ends early; they always do with `at` empty, every = 0

  /// `count` steps at most, from 0 to `steps`, whose ratios are about equal. The command line and Python record them
  /// where nothing else is asked for.
  static RecordPlan spread(Index steps, Index count = 100);
  bool due(Index step, Index steps) const;  ///< whether a run of `steps` steps records its point after `step`
  /// The first step from `from` up to `steps` that is due; −1: none.
  Index next(Index from, Index steps) const;
  Index count(Index steps) const;                      ///< how many records a run of `steps` steps has
  bool operator==(const RecordPlan&) const = default;  ///< whether both record the same steps
};

/// A recorded point of a run. Loss and gradient are those of all queries, without dropout, at
/// temperature 1 and by the softmax.
struct Record {
  Index step = 0;           ///< steps taken before
  double loss = 0;          ///< L = mean ℓ(y_i f_i), which may round to 0
  double log_loss = 0;      ///< log L without underflow; NaN if L < 0
  double norm = 0;          ///< ‖W‖_F
  double log_gradient = 0;  ///< log ‖∂L/∂W‖_F without underflow; −infinity if the gradient is zero
  RowMatrix W;              ///< (d,dz); with many heads (H·d,dz), one W under the other
  Eigen::VectorXd v;        ///< the head's v; joint training only, else empty. With many heads (H·dv)
};

/// What is trained.
enum class Parametrization : std::uint8_t {
  W,   ///< W itself
  KQ,  ///< W = K Qᵀ
  p,   ///< W with dz = 1, which is a vector p
};

/// How a step changes each trained array θ with gradient g; `step` includes the schedule. With momentum B, the average
/// m ← B·m + (1−B)·g takes the place of g. D(g) is the steepest direction of a norm N: the matrix with N(D) ≤ 1 and the
/// largest ⟨g,D⟩, which is the dual norm N*(g). A step along it is D·N*(g)/(N*(g) + ε).
enum class Optimizer : std::uint8_t {
  gd,      ///< θ ← θ − step·g
  ngd,     ///< θ ← θ − step·g/(‖g‖_F + ε), each array with its own norm
  polyak,  ///< θ ← θ − step·(L − L*)/‖g‖²·g, L* = mean ℓ(max_t γ_it), ‖g‖ over all arrays; fixed linear heads only
  mirror,  ///< sign(θ)|θ|^{P−1} ← sign(θ)|θ|^{P−1} − step·g, entry by entry
  adam,    ///< Adam; its betas are .9 and .999, its ε 1e-8 unless they are given
  adamw,   ///< adam whose weights decay by .01 unless another weight decay is given
  signum,  ///< steepest descent in the largest entry, with momentum .9 unless it is given: signs
  lion,    ///< signs of b1·m + (1−b1)·g, then m ← b2·m + (1−b2)·g; betas .9 and .99 unless they are given
  muon,    ///< steepest descent in the spectral norm, with momentum .95 unless it is given: U Vᵀ
  steepest,  ///< steepest descent in the norm `norm`: θ ← θ − step·D(g)
};

/// How the step size changes with the number k of steps taken before.
enum class Schedule : std::uint8_t {
  constant,
  sqrt,    ///< step/√(1+k)
  cosine,  ///< step·(1 + cos(πk/steps))/2
};

/// Where a run begins.
enum class Init : std::uint8_t {
  usual,  ///< zero for W and p, random for (K,Q)
  zero,
  random,  ///< uniform in ±1/√d for W and K, in ±1/√dz for Q
};

/// How a query takes its attention from its logits in a training step. Records, loss and attention of a finished run
/// are those of the softmax, whatever it was trained with; attsvm/selector.h has those of the hard selection.
enum class Selector : std::uint8_t {
  soft,  ///< the softmax s
  /// Forward one token, drawn from s by Gumbel noise: argmax_t a_t + G_t. Backward (straight through) as if the output
  /// had been that of softmax(a + G).
  gumbel,
  /// Weights drawn from the Dirichlet distribution with parameters concentration·s, whose mean is s. The gradient is
  /// that of the draw at fixed uniform numbers (implicit reparametrization).
  dirichlet,
};

std::string_view name_of(Parametrization param);  ///< the name that files, JSON and messages use
std::string_view name_of(Optimizer optimizer);    ///< the name that files, JSON and messages use
std::string_view name_of(Schedule schedule);      ///< the name that files, JSON and messages use
std::string_view name_of(Init init);              ///< the name that files, JSON and messages use
std::string_view name_of(Selector selector);      ///< the name that files, JSON and messages use

namespace internal {
struct PresentPoint;
struct SharedTask;
}  // namespace internal

/// The state of a run before a step, valid while the progress callback runs. Loss and norm are computed when they are
/// asked for; train_many, which takes the steps of many runs at once, may have NaN instead.
class TrainProgress {
 public:
  /// Without a point, loss and norm are NaN.
  explicit TrainProgress(Index steps, internal::PresentPoint* point = nullptr) : step(steps), point_(point) {}

  Index step;           ///< steps taken so far
  double loss() const;  ///< L; with minibatches, of the minibatch of this step
  double norm() const;  ///< ‖W‖_F

 private:
  internal::PresentPoint* point_;
};

/// How to train.
struct TrainSettings {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of thought
  Parametrization param = Parametrization::W;  ///< what is trained
  bool joint = false;  ///< train the head's v too (hidden layer: its output weights); B and λ stay fixed
  /// H heads of attention, f_i = Σ_h v_hᵀ V_iᵀ softmax(X_i W_h z_i), linear ones. The v_h are the rows of the task's
  /// `head`; those it lacks are drawn from the seed, of length 1.
  Index heads = 1;
  bool shared_norm = false;  ///< many heads: steps divide by one norm over all heads instead of one per head
  Index width = 0;           ///< columns of K and Q; 0: min(d,dz)
  Optimizer optimizer = Optimizer::ngd;  ///< how a step is taken
  double power = 2;                      ///< P of mirror descent; must be above 1
  Norm norm{};                           ///< of Optimizer::steepest
  std::optional<double> momentum{};      ///< B of gd, ngd, steepest, signum and muon, 0 ≤ B < 1; left out: as usual
  std::optional<std::array<double, 2>> betas{};  ///< of adam, adamw and lion, 0 ≤ b < 1; left out: as usual
  Index newton_schulz = 0;  ///< muon: iterations that approximate U Vᵀ, as in its published form; 0: U Vᵀ itself
  bool normalize = false;   ///< mirror descent: use g/(‖g‖_F + ε) instead of g
  double step = 0.1;        ///< step size η, before the schedule
  Index steps = 2000;       ///< how many to take
  Schedule schedule = Schedule::constant;  ///< how the step size changes
  std::optional<double> epsilon{};         ///< ε; left out: 1e-8 for adam and adamw, 0 for all others
  std::optional<double> head_epsilon{};    ///< ε for the head's v; left out: epsilon
  double ridge = 0;  ///< adds ridge·(‖K‖² + ‖Q‖²) to what is minimised, not to the reported loss
  /// Every step multiplies θ by 1 − step·weight_decay; left out: .01 for adamw, 0 for all others.
  std::optional<double> weight_decay{};
  double dropout = 0;          ///< chance of dropping an attention weight in a step, 0 ≤ dropout < 1
  Index batch = 0;             ///< queries per step; every epoch takes each query once, in random order; 0: all queries
  Loss loss = Loss::logistic;  ///< ℓ
  /// Logistic loss: a query has its own label with weight 1 − label_smoothing/2 and the other one with the rest, 0 ≤
  /// label_smoothing < 1. Its loss is least at u = log(2/label_smoothing − 1) instead of at infinity.
  double label_smoothing = 0;
  Selector selector = Selector::soft;  ///< how attention is taken from logits
  double concentration = 10;           ///< of Selector::dirichlet: the sum of the parameters
  double entropy = 0;  ///< β ≥ 0: adds β times the mean entropy of the softmax to what is minimised, not to the loss
  /// Steps divide logits by a temperature, which goes from the first to the second number geometrically.
  std::array<double, 2> temperature{1, 1};
  Arithmetic arithmetic = Arithmetic::exact;  ///< how loss and gradients are computed
  Init init = Init::usual;                    ///< where the run begins
  std::uint64_t seed = 0;                     ///< for the random start, minibatches, dropout and selectors
  std::uint32_t instance = 0;  ///< runs with the same seed and different instances draw different random numbers
  RecordPlan record{};         ///< which points it records
  double stop_direction = 0;  ///< stop if W/‖W‖_F moved by at most this while the number of steps doubled, and by no
                              ///< more than in the doubling before; 0: never
  double time_limit = 0;  ///< seconds; 0: none
  /// Called before every step; return true to stop. train_many calls it from several threads at once.
  std::function<bool(const TrainProgress&)> progress{};
};

/// The settings that determine a run, in words: "W, ngd, step 0.1, 2000 steps, logistic loss, exact arithmetic, seed
/// 0", then those that differ from their defaults.
std::string words_of(const TrainSettings& settings);

/// The starting point of a run. Arrays that are empty are set as TrainSettings::init says.
struct Start {
  RowMatrix W{};        ///< (d,dz); with many heads (H·d,dz), one under the other, and so are K, Q and v
  RowMatrix K{};        ///< (d,r)
  RowMatrix Q{};        ///< (dz,r)
  Eigen::VectorXd v{};  ///< replaces v of the task's head, whether it is trained or not
};

/// Why a run ended.
enum class TrainStop : std::uint8_t {
  finished,       ///< all steps were taken
  zero_gradient,  ///< the gradient is exactly zero, so that no step would move; records still due repeat this point
  direction,      ///< stop_direction was met; records still due repeat this point
  overflow,       ///< the next point would overflow; the run ends at the last point that does not
  asked,          ///< `progress` returned true, or the time limit was reached; the state allows the run to go on
};

std::string_view name_of(TrainStop stop);  ///< the name that files, JSON and messages use

/// A run: its last point and its records. With many heads W, K and Q are (H·d,dz), (H·d,r) and (H·dz,r).
struct TrainedRun {
  TrainStop stop = TrainStop::finished;  ///< why it ended
  Index steps = 0;                       ///< steps taken
  RowMatrix W;                           ///< (d,dz)
  RowMatrix K;                           ///< (d,r); Parametrization::KQ only
  RowMatrix Q;                           ///< (dz,r); Parametrization::KQ only
  Head head;                    ///< the head at the last point; many heads: v is (H·dv), one v_h after another
  double loss = 0;              ///< as in Record, at the last point
  double log_loss = 0;          ///< as in Record
  double norm = 0;              ///< as in Record
  double log_gradient = 0;      ///< as in Record
  std::vector<Record> records;  ///< the points that TrainSettings::record asks for
};

/// One training run whose state can be stored and restored: a resumed run gives the same bits as one without a break.
class Trainer {
 public:
  /// Sets up the starting point. InputError names the setting or array that cannot be used. `threads` must outlive the
  /// trainer.
  Trainer(const AttentionTask& task, const TrainSettings& settings, Threads& threads, const Start& start = {});
  /// The same for a task whose queries other processes share; for the program.
  Trainer(const internal::SharedTask& task, const TrainSettings& settings, Threads& threads, const Start& start = {});
  ~Trainer();

  /// Trains until the run ends for one of the reasons in TrainStop. `keep` gets each record when it is due, in the
  /// order of steps.
  TrainStop run(const std::function<void(const Record&)>& keep);

  Index step() const;         ///< steps taken so far
  const Head& head() const;   ///< at the present point
  TrainedRun result() const;  ///< the present point, without records

  /// All numbers that the rest of the run depends on.
  std::vector<double> state() const;
  /// Continues from a state() of a trainer with the same task and settings. InputError if the count of numbers or the
  /// step does not fit.
  void restore(std::span<const double> state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Trains one run and keeps its records in memory. InputError names the setting or array that cannot be used.
TrainedRun train(const AttentionTask& task, const TrainSettings& settings, Threads& threads, const Start& start = {});

/// Trains many small tasks at once, one run per task. Run k gives the same numbers as train() with instance =
/// settings.instance + k. `starts` is empty or has one entry per task. The time limit holds for all runs together.
/// InputError names the setting or array that cannot be used.
std::vector<TrainedRun> train_many(std::span<const AttentionTask> tasks, const TrainSettings& settings,
                                   Threads& threads, std::span<const Start> starts = {});

}  // namespace attsvm
