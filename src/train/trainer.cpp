#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "attsvm/selector.h"
#include "attsvm/train.h"
#include "base/memory.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "train/batches.h"
#include "train/gradient.h"
#include "train/lane_runs.h"
#include "train/parameters.h"
#include "train/settings.h"
#include "train/shared_task.h"
#include "train/update.h"

namespace attsvm {

using namespace internal;

/// The point of a run for TrainProgress.
struct internal::PresentPoint {
  virtual ~PresentPoint() = default;
  virtual double loss() = 0;
  virtual double norm() = 0;
};

double TrainProgress::loss() const {
  return point_ != nullptr ? point_->loss() : std::numeric_limits<double>::quiet_NaN();
}
double TrainProgress::norm() const {
  return point_ != nullptr ? point_->norm() : std::numeric_limits<double>::quiet_NaN();
}

namespace {

PassSettings pass_settings(const TrainSettings& settings) {
  return {.loss = settings.loss,
          .label_smoothing = settings.label_smoothing,
          .arithmetic = settings.arithmetic,
          .head_gradient = settings.joint,
          .excess = settings.optimizer == Optimizer::polyak,
          .heads = settings.heads};
}

}  // namespace

struct Trainer::Impl final : PresentPoint {
  Impl(const SharedTask& given_task, const TrainSettings& given, const Start& start, Threads& threads);

  void evaluate();  // loss and gradient at `now` for the minibatch of this step
  bool advance();   // one step; false: the next point would overflow, and `now` stays
  Record record();  // `now`, over all queries
  double loss() override { return lane ? lane->loss(0) : at.loss; }
  double norm() override;
  bool asked_to_stop(const TimeLimit& limit);
  bool gradient_is_zero() const;
  bool usable() const;  // neither the point nor its gradient has overflowed
  bool settled();       // the direction of W has stopped moving
  TrainStop repeat(TrainStop stop, const TimeLimit& limit, const std::function<void(const Record&)>& keep);

  AttentionTask task;  // keeps the memory that `pass` reads; of a shared task, this rank's part
  SharedTask shared;
  TrainSettings settings;
  bool restless;  // the gradient changes from step to step where the point does not
  bool apart;     // what steps see is not what records show: all queries, the softmax, temperature 1
  GradientPass pass;
  Batches batches;
  Head head;
  Parameters now, next;
  Update update;
  std::unique_ptr<LaneRuns> lane{};  // small runs are computed there; `now` is then updated on demand
  ChainRule chain{};
  const std::vector<const ScaledMatrix*>* gradients = nullptr;
  RowMatrix cooled{};  // W / temperature, where that is not 1
  LossGradient at{}, full{};
  Index step = 0;
  RowMatrix reference{};                    // W/‖W‖ at the last number of steps that was a power of two
  RowMatrix moved = RowMatrix::Zero(1, 1);  // one number: how far W/‖W‖ moved from the reference before
};

Trainer::Impl::Impl(const SharedTask& given_task, const TrainSettings& given, const Start& start, Threads& threads)
    : task(*given_task.part),
      shared(given_task),
      settings((require_usable(given, task), given)),
      restless(settings.dropout > 0 || settings.selector != Selector::soft ||
               (settings.batch > 0 && settings.batch < shared.queries) ||
               settings.temperature[0] != settings.temperature[1]),
      apart(restless || settings.entropy > 0 || settings.temperature[0] != 1),
      pass((shared.part = &task, shared), pass_settings(settings), threads),
      batches(shared.queries, settings.batch, settings.seed, settings.instance),
      head(starting_head(task, settings, start)),
      now(starting_point(task, settings, start, head)),
      next(now),
      update(settings, now) {
  if (settings.stop_direction > 0) reference = RowMatrix::Zero(now.W().rows(), now.W().cols());
  if (shared.ask) {
    shared.ask(Packer().put(Job::passes).put(pass_settings(settings)).take(), [] {});
  } else if (const auto input = lane_input(task, settings, head, now)) {
    lane = std::make_unique<LaneRuns>(input->shape, 1, settings);
    lane->put(0, task, *input, now);
  }
}

void Trainer::Impl::evaluate() {
  if (lane) return lane->evaluate();
  if (settings.joint) head.v = now.v();
  const double temperature = scheduled_temperature(settings, step);
  if (temperature != 1) cooled = now.W() / temperature;
  pass.evaluate(temperature != 1 ? cooled : now.W(), head,
                {.queries = batches.at(step),
                 .dropout = settings.dropout,
                 .selector = settings.selector,
                 .concentration = settings.concentration,
                 .temperature = temperature,
                 .entropy = settings.entropy,
                 .seed = settings.seed,
                 .instance = settings.instance,
                 .step = step},
                at);
  if (temperature != 1) at.W.divide(temperature, settings.arithmetic);
  gradients = &chain.apply(now, at, settings.ridge, settings.arithmetic);
}

bool Trainer::Impl::advance() {
  if (lane) {
    lane->advance(scheduled_step(settings, step), step);
    ++step;
    lane->evaluate();
    return true;
  }
  update.apply(now, *gradients, at.log_excess, step, next);
  next.form_product();
  std::swap(now, next);
  ++step;
  evaluate();
  if (usable()) return true;
  std::swap(now, next);  // back to the last point without overflow
  --step;
  evaluate();
  return false;
}

double Trainer::Impl::norm() {
  if (lane) lane->read_point(0, now);
  return safe_norm(now.W());
}

bool Trainer::Impl::asked_to_stop(const TimeLimit& limit) {
  return limit.over() || (settings.progress && settings.progress(TrainProgress(step, this)));
}

Record Trainer::Impl::record() {
  if (lane) return lane->record(0, step, now);
  if (apart) pass.evaluate(now.W(), head, {}, full);
  const LossGradient& here = apart ? full : at;
  return {step,
          here.loss,
          here.log_loss,
          safe_norm(now.W()),
          here.W.log_norm(),
          now.W(),
          settings.joint ? Eigen::VectorXd(now.v()) : Eigen::VectorXd()};
}

bool Trainer::Impl::gradient_is_zero() const {
  if (lane) return lane->rests(0);
  for (const ScaledMatrix* gradient : *gradients) {
    if (!gradient->is_zero()) return false;
  }
  return !restless && update.rests();
}

bool Trainer::Impl::usable() const {
  for (const ScaledMatrix* gradient : *gradients) {
    if (!gradient->direction.allFinite()) return false;
  }
  for (const RowMatrix& array : now.arrays) {
    if (!std::isfinite(safe_norm(array))) return false;
  }
  return std::isfinite(safe_norm(now.W()));
}

/// Whether the direction of W has converged. Far from its limit a run moves more from one doubling of the steps to the
/// next, so a small move counts only if it is no larger than the one before.
bool Trainer::Impl::settled() {
  if (settings.stop_direction == 0 || !std::has_single_bit(static_cast<std::uint64_t>(step))) return false;
  if (lane) lane->read_point(0, now);
  const RowMatrix direction = now.W() / std::max(safe_norm(now.W()), std::numeric_limits<double>::min());
  const double before = moved(0);
  moved(0) = (direction - reference).norm();
  reference = direction;
  return step > 2 && moved(0) <= settings.stop_direction && moved(0) <= before;
}

/// Gives all records that are still due the point at which the run ended.
TrainStop Trainer::Impl::repeat(TrainStop stop, const TimeLimit& limit,
                                const std::function<void(const Record&)>& keep) {
  Record last = record();
  for (Index due = step; (due = settings.record.next(due + 1, settings.steps)) >= 0;) {
    if (asked_to_stop(limit)) return TrainStop::asked;
    last.step = due;
    keep(last);
  }
  return stop;
}

Trainer::Trainer(const AttentionTask& task, const TrainSettings& settings, Threads& threads, const Start& start)
    : Trainer(SharedTask(task), settings, threads, start) {}

Trainer::Trainer(const SharedTask& shared, const TrainSettings& settings, Threads& threads, const Start& start) {
  const AttentionTask& task = *shared.part;
  // Not even the point, its gradient and the next one would fit. Measured from d = dz = 1,000 on, whole runs take 12 to
  // 26 times the memory of W.
  constexpr double kBytes = 8 * sizeof(double);
  if (settings.param != Parametrization::p)
    require_memory(kBytes * static_cast<double>(settings.heads) * static_cast<double>(task.key_size()) *
                       static_cast<double>(task.query_size()),
                   fmt::format("training {}W of {} x {}",
                               settings.heads == 1 ? "" : fmt::format("{} heads, each a ", settings.heads),
                               task.key_size(), task.query_size()));
  impl_ = std::make_unique<Impl>(shared, settings, start, threads);
}

Trainer::~Trainer() = default;

TrainStop Trainer::run(const std::function<void(const Record&)>& keep) {
  Impl& my = *impl_;
  const TrainSettings& settings = my.settings;
  const TimeLimit limit(settings.time_limit);
  my.evaluate();
  for (;;) {
    if (settings.record.due(my.step, settings.steps)) keep(my.record());
    if (my.step == settings.steps) return TrainStop::finished;
    if (my.asked_to_stop(limit)) return TrainStop::asked;
    if (my.gradient_is_zero()) return my.repeat(TrainStop::zero_gradient, limit, keep);
    if (!my.advance()) return TrainStop::overflow;
    if (my.settled()) {
      if (settings.record.due(my.step, settings.steps)) keep(my.record());
      return my.repeat(TrainStop::direction, limit, keep);
    }
  }
}

Index Trainer::step() const { return impl_->step; }

const Head& Trainer::head() const { return impl_->head; }

TrainedRun Trainer::result() const {
  const Record here = impl_->record();
  TrainedRun run{.steps = here.step,
                 .W = here.W,
                 .head = impl_->head,
                 .loss = here.loss,
                 .log_loss = here.log_loss,
                 .norm = here.norm,
                 .log_gradient = here.log_gradient};
  if (impl_->settings.param == Parametrization::KQ) {
    run.K = impl_->now.all(0);
    run.Q = impl_->now.all(1);
  }
  return run;
}

namespace {

/// Every number of the state in a fixed order.
template <class My, class Use>
void for_each_number(My& my, Use&& use) {
  const auto all_of = [&](auto& array) { std::for_each(array.data(), array.data() + array.size(), use); };
  if (my.lane) my.lane->for_each_number(0, use);
  for (auto& array : my.now.arrays) {
    if (!my.lane) all_of(array);
  }
  if (!my.lane) Update::for_each_array(my.update, all_of);
  all_of(my.reference);
  all_of(my.moved);
}

}  // namespace

std::vector<double> Trainer::state() const {
  std::vector<double> numbers{static_cast<double>(impl_->step)};
  for_each_number(*impl_, [&](const double& number) { numbers.push_back(number); });
  return numbers;
}

void Trainer::restore(std::span<const double> state) {
  std::size_t size = 1;
  for_each_number(*impl_, [&](const double&) { ++size; });
  if (state.size() != size) refuse("the state of a run has {} numbers; must be {}", state.size(), size);
  if (!(state[0] >= 0 && state[0] <= static_cast<double>(impl_->settings.steps))) {
    refuse("the state of a run is at step {}; must be from 0 to {}", state[0], impl_->settings.steps);
  }
  impl_->step = static_cast<Index>(state[0]);
  const double* from = state.data() + 1;
  for_each_number(*impl_, [&](double& number) { number = *from++; });
  impl_->now.form_product();
  impl_->next = impl_->now;
}

TrainedRun train(const AttentionTask& task, const TrainSettings& settings, Threads& threads, const Start& start) {
  Trainer trainer(task, settings, threads, start);
  std::vector<Record> records;
  const TrainStop stop = trainer.run([&](const Record& record) { records.push_back(record); });
  TrainedRun run = trainer.result();
  run.stop = stop;
  run.records = std::move(records);
  return run;
}

}  // namespace attsvm
