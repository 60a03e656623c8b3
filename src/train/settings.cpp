#include "train/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "base/refuse.h"

namespace attsvm {

std::string_view name_of(Parametrization param) {
  switch (param) {
    case Parametrization::W:
      return "W";
    case Parametrization::KQ:
      return "KQ";
    case Parametrization::p:
      return "p";
  }
  throw std::logic_error("unknown parametrization");
}

std::string_view name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::gd:
      return "gd";
    case Optimizer::ngd:
      return "ngd";
    case Optimizer::polyak:
      return "polyak";
    case Optimizer::mirror:
      return "mirror";
    case Optimizer::adam:
      return "adam";
  }
  throw std::logic_error("unknown optimizer");
}

std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::constant:
      return "constant";
    case Schedule::sqrt:
      return "sqrt";
    case Schedule::cosine:
      return "cosine";
  }
  throw std::logic_error("unknown schedule");
}

std::string words_of(const TrainSettings& settings) {
  const TrainSettings usual;
  std::string optimizer(name_of(settings.optimizer));
  if (settings.optimizer == Optimizer::mirror) optimizer += fmt::format(":{}", settings.power);
  std::string words =
      fmt::format("{}, {}, step {}, {} steps, {} loss, {} arithmetic, seed {}", name_of(settings.param), optimizer,
                  settings.step, settings.steps, name_of(settings.loss), name_of(settings.arithmetic), settings.seed);
  const auto add = [&](bool differs, const std::string& word) {
    if (differs) words += ", " + word;
  };
  add(settings.joint, "head trained too");
  add(settings.width != usual.width, fmt::format("width {}", settings.width));
  add(settings.normalize, "normalized");
  add(settings.schedule != usual.schedule, fmt::format("{} schedule", name_of(settings.schedule)));
  add(settings.epsilon != usual.epsilon, fmt::format("epsilon {}", settings.epsilon));
  add(settings.head_epsilon.has_value(),
      fmt::format("epsilon {} for the head", settings.head_epsilon.value_or(settings.epsilon)));
  add(settings.ridge != usual.ridge, fmt::format("ridge {}", settings.ridge));
  add(settings.weight_decay != usual.weight_decay, fmt::format("weight decay {}", settings.weight_decay));
  add(settings.dropout != usual.dropout, fmt::format("dropout {}", settings.dropout));
  add(settings.batch != usual.batch, fmt::format("batches of {}", settings.batch));
  add(settings.init == Init::zero, "start zero");
  add(settings.init == Init::random, "start random");
  add(settings.stop_direction != usual.stop_direction,
      fmt::format("stop once the direction moves less than {}", settings.stop_direction));
  return words;
}

std::string_view name_of(Init init) {
  switch (init) {
    case Init::usual:
      return "usual";
    case Init::zero:
      return "zero";
    case Init::random:
      return "random";
  }
  throw std::logic_error("unknown init");
}

std::string_view name_of(TrainStop stop) {
  switch (stop) {
    case TrainStop::finished:
      return "steps";
    case TrainStop::zero_gradient:
      return "zero gradient";
    case TrainStop::direction:
      return "direction";
    case TrainStop::overflow:
      return "overflow";
    case TrainStop::asked:
      return "asked";
  }
  throw std::logic_error("unknown reason to stop");
}

}  // namespace attsvm

namespace attsvm::internal {
namespace {

void require(bool holds, std::string_view name, double value, std::string_view rule) {
  if (!holds) refuse("{} = {}; must be {}", name, value, rule);
}

/// Finite and at least 0.
void require_size(std::string_view name, double value) {
  require(std::isfinite(value) && value >= 0, name, value, "a number from 0 up");
}

void require_count(std::string_view name, Index value, Index least) {
  if (value < least) refuse("{} = {}; must be a whole number from {} up", name, value, least);
}

}  // namespace

void require_usable(const TrainSettings& settings, const AttentionTask& task) {
  require(std::isfinite(settings.step) && settings.step > 0, "step", settings.step, "a number above 0");
  require_count("steps", settings.steps, 0);
  require_size("epsilon", settings.epsilon);
  if (settings.head_epsilon) require_size("epsilon of the head", *settings.head_epsilon);
  require_size("ridge", settings.ridge);
  require_size("weight decay", settings.weight_decay);
  require_size("stop direction", settings.stop_direction);
  require_size("time limit", settings.time_limit);
  require(settings.dropout >= 0 && settings.dropout < 1, "dropout", settings.dropout, "from 0 up, and below 1");
  require_count("batch", settings.batch, 0);
  require_count("record every", settings.record.every, 0);
  for (std::size_t k = 0; k < settings.record.at.size(); ++k) {
    const Index step = settings.record.at[k];
    if (step < 0 || step > settings.steps) {
      refuse("record at {}; must be a number of steps, 0 to {}", step, settings.steps);
    }
    if (k > 0 && step <= settings.record.at[k - 1]) refuse("record at {}: steps must ascend", step);
  }
  if (settings.param == Parametrization::p && task.query_size() != 1) {
    refuse("param = p needs queries of size 1; these have size {}", task.query_size());
  }
  require_count("width", settings.width, 0);
  if (settings.width > 0 && settings.param != Parametrization::KQ) refuse("width has no meaning without param = KQ");
  if (settings.optimizer == Optimizer::mirror) {
    require(std::isfinite(settings.power) && settings.power > 1, "power", settings.power, "above 1");
  } else if (settings.normalize) {
    refuse("normalize has no meaning without mirror descent");
  }
  if (settings.optimizer != Optimizer::polyak) return;
  if (task.head().kind != HeadKind::linear && task.head().kind != HeadKind::none) {
    refuse("polyak steps need a linear head; this one is {}", name_of(task.head().kind));
  }
  if (settings.joint) refuse("polyak steps need a fixed head: L* is not known while the head is trained");
  if (settings.dropout > 0) refuse("polyak steps have no meaning with dropout");
}

}  // namespace attsvm::internal
