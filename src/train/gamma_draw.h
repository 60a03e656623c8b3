#pragma once

namespace attsvm::internal {

/// A draw y from the gamma distribution of shape α and scale 1, in logarithms: for small α most draws are far below the
/// smallest double.
struct GammaDraw {
  double log_value;  ///< log y; −infinity if α is 0
  double log_slope;  ///< log ∂(log y)/∂α at a fixed uniform number
};

/// The quantile at `uniform`, in (0,1), and its derivative with respect to α: −(∂F/∂α)/f, where F is the distribution
/// function and f the density (implicit reparametrization).
GammaDraw draw_gamma(double alpha, double uniform);

}  // namespace attsvm::internal
