#include <cmath>

#include "attsvm/stack.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "train/many_heads.h"
#include "train/settings.h"
#include "train/stack_pass.h"
#include "train/update.h"

namespace attsvm {

using namespace internal;

namespace {

/// What is trained, in the order of StackGradient::lists().
template <class AnyStack>
auto trained_lists(AnyStack& stack, bool values) {
  return values ? std::vector{&stack.W, &stack.V, &stack.A, &stack.B} : std::vector{&stack.W};
}

/// The matrices of a stack as the arrays that an optimizer changes: one by one, or all in one tall array, which an
/// optimizer then measures by one norm.
class StackArrays {
 public:
  StackArrays(const StackSettings& settings) : values_(settings.train_values), one_(settings.one_norm) {}

  Parameters pack(const Stack& stack) const {
    Parameters point;
    for (const auto* list : trained_lists(stack, values_)) {
      for (const RowMatrix& matrix : *list) point.arrays.push_back(matrix);
    }
    if (one_) point.arrays = {tall(point.arrays)};
    return point;
  }

  void unpack(const Parameters& point, Stack& stack) const {
    std::size_t k = 0;
    Index row = 0;
    for (auto* list : trained_lists(stack, values_)) {
      for (RowMatrix& matrix : *list) {
        const Index rows = matrix.rows();
        matrix = one_ ? point.arrays[0].middleRows(row, rows) : point.arrays[k];
        ++k;
        row += rows;
      }
    }
  }

  /// Pointers to what `at` or this object holds.
  std::vector<const ScaledMatrix*> gradients(const StackGradient& at) {
    std::vector<const ScaledMatrix*> list;
    for (const auto* kind : at.lists()) {
      for (const ScaledMatrix& one : *kind) list.push_back(&one);
    }
    if (!one_) return list;
    joined_.log_scale = -std::numeric_limits<double>::infinity();
    for (const ScaledMatrix* one : list) joined_.log_scale = std::max(joined_.log_scale, one->log_scale);
    std::vector<RowMatrix> scaled;
    scaled.reserve(list.size());
    for (const ScaledMatrix* one : list)
      scaled.push_back(one->is_zero() ? one->direction : one->direction * std::exp(one->log_scale - joined_.log_scale));
    joined_.direction = tall(scaled);
    return {&joined_};
  }

 private:
  static RowMatrix tall(const std::vector<RowMatrix>& list) {
    Index rows = 0;
    for (const RowMatrix& one : list) rows += one.rows();
    RowMatrix all(rows, list.front().cols());
    rows = 0;
    for (const RowMatrix& one : list) {
      all.middleRows(rows, one.rows()) = one;
      rows += one.rows();
    }
    return all;
  }

  bool values_, one_;
  ScaledMatrix joined_;
};

void require_usable_stack(const StackSettings& settings, const AttentionTask& task) {
  const TrainSettings& training = settings.training;
  if (training.heads != 1 || training.shared_norm)
    refuse("heads and shared-norm of one layer have no meaning for a stack, which has heads and one-norm of its own");
  require_usable(training);
  require_stackable(task);
  if (settings.layers < 1) refuse("layers = {}; must be at least 1", settings.layers);
  if (settings.heads < 1) refuse("heads = {}; must be at least 1", settings.heads);
  if (settings.mlp < 0) refuse("mlp = {}; must be at least 0", settings.mlp);
  const auto forbid = [](bool used, const char* name) {
    if (used) refuse("{} has no meaning for a stack", name);
  };
  forbid(training.param != Parametrization::W, "param");
  forbid(training.joint, "joint");
  forbid(training.ridge != 0, "ridge");
  forbid(training.dropout != 0, "dropout");
  forbid(training.batch != 0, "batch");
  forbid(training.label_smoothing != 0, "label smoothing");
  forbid(training.stop_direction != 0, "stop direction");
  forbid(training.selector != Selector::soft, "a selector");
  forbid(training.entropy != 0, "entropy");
  forbid(training.temperature != TrainSettings{}.temperature, "temperature");
  forbid(training.arithmetic == Arithmetic::plain, "plain arithmetic");
  forbid(training.optimizer == Optimizer::polyak, "polyak");
  if (settings.one_norm) require_joint_norm(training, "one-norm");
  if (settings.values == StackValues::identity && settings.heads > 1 && training.init != Init::random)
    refuse("heads = {} with identity values from zero would stay equal; start at random", settings.heads);
}

class StackTrainer {
 public:
  StackTrainer(const AttentionTask& task, const StackSettings& settings, Threads& threads)
      : task_(task),
        settings_((require_usable_stack(settings, task), settings)),
        threads_(threads),
        arrays_(settings),
        stack_(starting_stack(task, settings)),
        now_(arrays_.pack(stack_)),
        next_(now_),
        update_(settings.training, now_) {}

  StackRun run() {
    const TrainSettings& training = settings_.training;
    const TimeLimit limit(training.time_limit);
    StackRun run;
    evaluate();
    for (;;) {
      if (training.record.due(step_, training.steps)) run.records.push_back(record(settings_.train_values));
      if (step_ == training.steps) break;
      if (limit.over() || (training.progress && training.progress(TrainProgress(step_)))) {
        run.stop = TrainStop::asked;
        break;
      }
      if (rests()) {
        run.stop = TrainStop::zero_gradient;
        break;
      }
      if (!advance()) {
        run.stop = TrainStop::overflow;
        break;
      }
    }
    run.last = record(true);
    if (run.records.empty() || run.records.back().step != step_) run.records.emplace_back();
    run.records.back() = run.last;
    return run;
  }

 private:
  void evaluate() {
    stack_gradient(task_, stack_, task_.head(), settings_.training.loss, settings_.train_values, threads_, at_);
  }
  void move_to(const Parameters& point) {
    arrays_.unpack(point, stack_);
    evaluate();
  }
  bool usable() const {
    for (const auto* list : at_.lists()) {
      for (const ScaledMatrix& gradient : *list) {
        if (!gradient.direction.allFinite() || std::isnan(gradient.log_scale)) return false;
      }
    }
    return !std::isnan(at_.loss);
  }
  bool rests() const {
    for (const auto* list : at_.lists()) {
      for (const ScaledMatrix& gradient : *list) {
        if (!gradient.is_zero()) return false;
      }
    }
    return update_.rests();
  }
  bool advance() {
    update_.apply(now_, arrays_.gradients(at_), 0, step_, next_);
    move_to(next_);
    if (!usable()) {
      move_to(now_);  // back to the last point without overflow
      return false;
    }
    std::swap(now_, next_);
    ++step_;
    return true;
  }
  StackRecord record(bool with_values) const {
    StackRecord record{.step = step_, .loss = at_.loss, .log_loss = at_.log_loss, .log_gradient = {}, .stack = {}};
    record.stack = {.layers = stack_.layers, .heads = stack_.heads, .causal = stack_.causal, .W = stack_.W};
    if (with_values) {
      record.stack.V = stack_.V;
      record.stack.A = stack_.A;
      record.stack.B = stack_.B;
    }
    for (const ScaledMatrix& gradient : at_.W) record.log_gradient.push_back(gradient.log_norm());
    return record;
  }

  const AttentionTask& task_;
  StackSettings settings_;
  Threads& threads_;
  StackArrays arrays_;
  Stack stack_;
  Parameters now_, next_;
  Update update_;
  StackGradient at_;
  Index step_ = 0;
};

}  // namespace

StackRun train_stack(const AttentionTask& task, const StackSettings& settings, Threads& threads) {
  return StackTrainer(task, settings, threads).run();
}

}  // namespace attsvm
