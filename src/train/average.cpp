#include "train/average.h"

#include <cmath>
#include <limits>

namespace attsvm::internal {

Average::Average(Index rows, Index cols, Arithmetic arithmetic)
    : exact_(arithmetic == Arithmetic::exact), m_(RowMatrix::Zero(rows, cols)), block_(m_), mixed_block_(m_) {}

void Average::add(const ScaledMatrix& g, double b1, double b2, ScaledMatrix& mixed) {
  mixed.direction.resize(m_.rows(), m_.cols());
  mixed.log_scale = 0;
  if (!exact_) {
    mixed.direction = b1 * m_ + (1 - b1) * g.direction;
    m_ = b2 * m_ + (1 - b2) * g.direction;
    return;
  }
  const WideScale scale(g.log_scale);
  double top = -std::numeric_limits<double>::infinity(), bottom = -top;
  for (Index j = 0; j < m_.size(); ++j) {
    const WideNumber now = scale.times(g.direction.data()[j]), past{m_.data()[j], block_.data()[j]};
    const double block = common_block(now, past), g_x = in_block(now, block), m_x = in_block(past, block);
    const WideNumber used = normal({b1 * m_x + (1 - b1) * g_x, block});
    const WideNumber kept = normal({b2 * m_x + (1 - b2) * g_x, block});
    mixed.direction.data()[j] = used.x;
    mixed_block_.data()[j] = used.block;
    m_.data()[j] = kept.x;
    block_.data()[j] = kept.block;
    if (used.x == 0) continue;
    top = std::max(top, used.block);
    bottom = std::min(bottom, used.block);
  }
  mixed.log_scale = top * kLogBlock;  // −infinity if the mixture is zero
  if (top <= bottom) return;
  for (Index j = 0; j < m_.size(); ++j) {
    double& x = mixed.direction.data()[j];
    const double shifted = in_block({x, mixed_block_.data()[j]}, top);
    x = shifted == 0 && x != 0 ? std::copysign(std::numeric_limits<double>::denorm_min(), x) : shifted;
  }
}

AdamMoments::AdamMoments(Index rows, Index cols, Arithmetic arithmetic)
    : exact_(arithmetic == Arithmetic::exact), m_(RowMatrix::Zero(rows, cols)), r_(m_), block_(m_) {}

void AdamMoments::add(const ScaledMatrix& g, const std::array<double, 2>& betas, double epsilon, Index step,
                      RowMatrix& out) {
  const auto [b1, b2] = betas;
  const double t = static_cast<double>(step + 1), first_bias = 1 - std::pow(b1, t), second_bias = 1 - std::pow(b2, t);
  out.resize(m_.rows(), m_.cols());
  if (!exact_) {
    for (Index j = 0; j < m_.size(); ++j) {
      const double entry = g.direction.data()[j];
      double &m = m_.data()[j], &square = r_.data()[j];
      m = b1 * m + (1 - b1) * entry;
      square = b2 * square + (1 - b2) * entry * entry;
      out.data()[j] = m == 0 ? 0 : (m / first_bias) / (std::sqrt(square / second_bias) + epsilon);
    }
    return;
  }
  const WideScale scale(g.log_scale);
  const double second_root = std::sqrt(second_bias);
  for (Index j = 0; j < m_.size(); ++j) {
    double &m = m_.data()[j], &r = r_.data()[j], &block = block_.data()[j];
    const WideNumber now = scale.times(g.direction.data()[j]);
    const double shared = common_block(now, {std::max(r, std::abs(m)), block});
    const double g_x = in_block(now, shared), r_x = in_block({r, block}, shared);
    m = b1 * in_block({m, block}, shared) + (1 - b1) * g_x;
    r = std::sqrt(b2 * r_x * r_x + (1 - b2) * g_x * g_x);
    block = shared;
    if (r > 0 && (r < kLowest || r >= kHighest)) {
      const WideNumber root = normal({r, block});
      m *= root.block < block ? kBlock : kBlockInverse;
      r = root.x;
      block = root.block;
    }
    const double floor = epsilon > 0 ? epsilon * std::exp(-block * kLogBlock) : 0;
    out.data()[j] = m == 0 ? 0 : (m / first_bias) / (r / second_root + floor);
  }
}

}  // namespace attsvm::internal
