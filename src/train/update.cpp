#include "train/update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace attsvm::internal {
namespace {

/// sign(x)|x|^power
double signed_power(double x, double power) { return std::copysign(std::pow(std::abs(x), power), x); }

/// log of ‖g‖² over all arrays
double log_square(const std::vector<const ScaledMatrix*>& gradients) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const ScaledMatrix* gradient : gradients) top = std::max(top, 2 * gradient->log_norm());
  for (const ScaledMatrix* gradient : gradients) sum += std::exp(2 * gradient->log_norm() - top);
  return top + std::log(sum);
}

}  // namespace

double scheduled_step(const TrainSettings& settings, Index step) {
  const auto k = static_cast<double>(step);
  switch (settings.schedule) {
    case Schedule::constant:
      return settings.step;
    case Schedule::sqrt:
      return settings.step / std::sqrt(1 + k);
    case Schedule::cosine:
      return settings.step * (1 + std::cos(std::numbers::pi * k / static_cast<double>(settings.steps))) / 2;
  }
  throw std::logic_error("unknown schedule");
}

Update::Update(const TrainSettings& settings, const Parameters& point)
    : settings_(settings),
      rule_(rule_of(settings)),
      joint_(point.joint),
      arrays_(point.arrays.size()),
      direction_(rule_.norm) {
  for (const RowMatrix& array : point.arrays) {
    if (rule_.averages()) averages_.emplace_back(array.rows(), array.cols(), settings.arithmetic);
    if (rule_.kind == StepKind::adam) moments_.emplace_back(array.rows(), array.cols(), settings.arithmetic);
  }
}

double Update::epsilon(std::size_t k) const {
  const bool head = joint_ && k + 1 == arrays_;
  return head ? rule_.head_epsilon : rule_.epsilon;
}

bool Update::rests() const {
  return rule_.weight_decay == 0 &&
         std::all_of(averages_.begin(), averages_.end(), [](const Average& average) { return average.is_zero(); }) &&
         std::all_of(moments_.begin(), moments_.end(), [](const AdamMoments& moments) { return moments.is_zero(); });
}

void Update::mirror(const RowMatrix& theta, const ScaledMatrix& g, double factor, RowMatrix& out) const {
  const double power = settings_.power - 1;
  for (Index j = 0; j < theta.size(); ++j) {
    const double mirrored = signed_power(theta.data()[j], power) - factor * g.direction.data()[j];
    out.data()[j] = signed_power(mirrored, 1 / power);
  }
}

void Update::steepest(const RowMatrix& theta, const ScaledMatrix& g, std::size_t k, double step_size, RowMatrix& out) {
  const double scaled_epsilon = epsilon(k) > 0 ? epsilon(k) * std::exp(-g.log_scale) : 0;  // e^{log_scale} cancels
  if (settings_.newton_schulz > 0) {
    newton_schulz(g.direction, scaled_epsilon, settings_.newton_schulz, moved_);
    out = theta - step_size * moved_;
    return;
  }
  direction_.compute(g.direction, scaled_epsilon);
  out = theta - step_size / direction_.divisor() * direction_.along();
}

void Update::apply(const Parameters& now, const std::vector<const ScaledMatrix*>& gradients, double log_excess,
                   Index step, Parameters& next) {
  const double step_size = scheduled_step(settings_, step);
  for (std::size_t k = 0; k < arrays_; ++k) {
    const RowMatrix& theta = now.arrays[k];
    RowMatrix& out = next.arrays[k];
    const ScaledMatrix* g = gradients[k];
    if (rule_.averages()) {
      averages_[k].add(*g, rule_.betas[0], rule_.betas[1], mixed_);
      g = &mixed_;
    }
    if (rule_.kind == StepKind::adam) {
      moments_[k].add(*g, rule_.betas, epsilon(k), step, moved_);
      out = theta - step_size * moved_;
    } else if (g->is_zero()) {
      out = theta;
    } else if (rule_.kind == StepKind::steepest) {
      steepest(theta, *g, k, step_size, out);
    } else if (rule_.kind == StepKind::mirror) {
      const double scaled_epsilon = epsilon(k) > 0 ? epsilon(k) * std::exp(-g->log_scale) : 0;
      mirror(theta, *g,
             settings_.normalize ? step_size / (safe_norm(g->direction) + scaled_epsilon)
                                 : step_size * std::exp(g->log_scale),
             out);
    } else if (rule_.kind == StepKind::polyak) {
      out = theta - step_size * std::exp(log_excess + g->log_scale - log_square(gradients)) * g->direction;
    } else {
      out = theta - step_size * std::exp(g->log_scale) * g->direction;
    }
    if (rule_.weight_decay > 0) out -= step_size * rule_.weight_decay * theta;
  }
}

}  // namespace attsvm::internal
