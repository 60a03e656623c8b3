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
    : exact_(arithmetic == Arithmetic::exact), m_(RowMatrix::Zero(rows, cols)), s_(m_), block_(m_) {}

void AdamMoments::add(const ScaledMatrix& g, const std::array<double, 2>& betas, double epsilon, Index step,
                      RowMatrix& out) {
  const auto [b1, b2] = betas;
  const double t = static_cast<double>(step + 1), first_bias = 1 - std::pow(b1, t), second_bias = 1 - std::pow(b2, t);
  const WideScale scale(g.log_scale);
  out.resize(m_.rows(), m_.cols());
  for (Index j = 0; j < m_.size(); ++j) {
    double &m = m_.data()[j], &s = s_.data()[j], &block = block_.data()[j];
    double now = g.direction.data()[j];
    if (exact_) {
      const WideNumber wide = scale.times(now);
      const double shared = common_block(wide, {std::max(s, std::abs(m)), block});
      now = in_block(wide, shared);
      m = in_block({m, block}, shared);
      s = in_block({in_block({s, block}, shared), block}, shared);
      block = shared;
    }
    m = b1 * m + (1 - b1) * now;
    s = b2 * s + (1 - b2) * now * now;
    for (; exact_ && s > 0 && s < kLowest * kLowest; block -= 1) {
      s = s * kBlock * kBlock;
      m *= kBlock;
    }
    for (; exact_ && s >= kHighest * kHighest && std::isfinite(s); block += 1) {
      s = s * kBlockInverse * kBlockInverse;
      m *= kBlockInverse;
    }
    const double root = std::sqrt(s / second_bias) + in_units_of(epsilon, block);
    out.data()[j] = m == 0 ? 0 : (m / first_bias) / root;
  }
}

}  // namespace attsvm::internal
