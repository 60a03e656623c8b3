#pragma once

#include <string_view>

#include "attsvm/array.h"

namespace attsvm {

enum class HeadKind : std::uint8_t {
  none,       ///< the task has no head: no scores, no training
  linear,     ///< h(x) = vᵀx
  hidden,     ///< h(x) = vᵀ relu(Bᵀx)
  quadratic,  ///< h(x) = vᵀx − λ‖x‖²
};

std::string_view name_of(HeadKind kind);

/// The function h that reads the attended value.
struct Head {
  HeadKind kind = HeadKind::none;
  Eigen::VectorXd v{};  ///< (dv), or (h) output weights for a hidden layer
  Eigen::MatrixXd B{};  ///< (dv,h), hidden only
  double lambda = 0;    ///< quadratic only

  double value(const Eigen::Ref<const Eigen::VectorXd>& x) const;
  /// ∇h(x); relu is given the slope 0 at its kink, as deep-learning frameworks do.
  Eigen::VectorXd gradient(const Eigen::Ref<const Eigen::VectorXd>& x) const;
};

}  // namespace attsvm
