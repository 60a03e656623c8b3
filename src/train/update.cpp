#include "train/update.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace attsvm::internal {
namespace {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999, kAdamEpsilon = 1e-8;

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

double safe_norm(const RowMatrix& matrix) {
  const double norm = matrix.norm();
  return norm > 1e-150 && norm < 1e150 ? norm : matrix.stableNorm();
}

Update::Update(const TrainSettings& settings, const Parameters& point)
    : settings_(settings), joint_(point.joint), arrays_(point.arrays.size()) {
  if (settings.optimizer != Optimizer::adam) return;
  for (const RowMatrix& array : point.arrays) {
    for (int moment = 0; moment < 2; ++moment) memory_.push_back(RowMatrix::Zero(array.rows(), array.cols()));
  }
}

double Update::epsilon(std::size_t k) const {
  const bool head = joint_ && k + 1 == arrays_;
  return head && settings_.head_epsilon ? *settings_.head_epsilon : settings_.epsilon;
}

double Update::factor(const std::vector<const ScaledMatrix*>& gradients, std::size_t k, double log_excess,
                      double step) const {
  const ScaledMatrix& gradient = *gradients[k];
  if (settings_.optimizer == Optimizer::polyak) {
    return step * std::exp(log_excess + gradient.log_scale - log_square(gradients));
  }
  if (settings_.optimizer == Optimizer::ngd || settings_.normalize) {  // e^{log_scale} cancels in g/‖g‖
    const double scaled_epsilon = epsilon(k) > 0 ? epsilon(k) * std::exp(-gradient.log_scale) : 0;
    return step / (safe_norm(gradient.direction) + scaled_epsilon);
  }
  return step * std::exp(gradient.log_scale);
}

void Update::adam(const RowMatrix& now, const ScaledMatrix& gradient, std::size_t k, double step_size, Index step,
                  RowMatrix& next) {
  RowMatrix &first = memory_[2 * k], &second = memory_[2 * k + 1];
  const double scale = std::exp(gradient.log_scale), t = static_cast<double>(step + 1);
  const double first_bias = 1 - std::pow(kFirstDecay, t), second_bias = 1 - std::pow(kSecondDecay, t);
  for (Index j = 0; j < now.size(); ++j) {
    const double g = scale * gradient.direction.data()[j];
    double &m = first.data()[j], &s = second.data()[j];
    m = kFirstDecay * m + (1 - kFirstDecay) * g;
    s = kSecondDecay * s + (1 - kSecondDecay) * g * g;
    next.data()[j] = now.data()[j] - step_size * (m / first_bias) / (std::sqrt(s / second_bias) + kAdamEpsilon);
  }
}

void Update::apply(const Parameters& now, const std::vector<const ScaledMatrix*>& gradients, double log_excess,
                   Index step, Parameters& next) {
  const double step_size = scheduled_step(settings_, step);
  for (std::size_t k = 0; k < arrays_; ++k) {
    const RowMatrix& theta = now.arrays[k];
    const ScaledMatrix& gradient = *gradients[k];
    RowMatrix& out = next.arrays[k];
    if (settings_.optimizer == Optimizer::adam) {
      adam(theta, gradient, k, step_size, step, out);
    } else if (gradient.is_zero()) {
      out = theta;
    } else if (settings_.optimizer == Optimizer::mirror) {
      const double scale = factor(gradients, k, log_excess, step_size), power = settings_.power - 1;
      for (Index j = 0; j < theta.size(); ++j) {
        const double mirrored = signed_power(theta.data()[j], power) - scale * gradient.direction.data()[j];
        out.data()[j] = signed_power(mirrored, 1 / power);
      }
    } else {
      out = theta - factor(gradients, k, log_excess, step_size) * gradient.direction;
    }
    if (settings_.weight_decay > 0) out -= step_size * settings_.weight_decay * theta;
  }
}

}  // namespace attsvm::internal
