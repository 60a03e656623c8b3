#include "base/kernels/jacobi.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/kernels/jacobi.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kMostSweeps = 60;                                             // six are common from scratch
constexpr double kOrthogonal = 4 * std::numeric_limits<double>::epsilon();  // cosine of two columns
constexpr double kSteep = 1e9;  // slopes whose square hides the 1 beside it, and might overflow
// A sweep leaves cosines of the size of its largest cosine times its largest turn. Columns of nearly equal length turn
// far however small their cosine is.
constexpr double kLast = 64 * std::numeric_limits<double>::epsilon();

bool orthogonalize_lanes(double* columns, Index stride, Index rows, Index count) {
  const hn::CappedTag<double, 4> v;  // as in dense.cpp
  const auto w = static_cast<Index>(hn::Lanes(v));
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double largest_cosine = 0, largest_turn = 0;
    for (Index p = 0; p < count; ++p) {
      for (Index q = p + 1; q < count; ++q) {
        double *x = columns + p * stride, *y = columns + q * stride;
        auto sum_xx = hn::Zero(v), sum_xy = sum_xx, sum_yy = sum_xx;
        for (Index i = 0; i < rows; i += w) {
          const auto a = hn::LoadU(v, x + i), b = hn::LoadU(v, y + i);
          sum_xx = hn::MulAdd(a, a, sum_xx), sum_xy = hn::MulAdd(a, b, sum_xy), sum_yy = hn::MulAdd(b, b, sum_yy);
        }
        const double xx = hn::GetLane(hn::SumOfLanes(v, sum_xx)), xy = hn::GetLane(hn::SumOfLanes(v, sum_xy)),
                     yy = hn::GetLane(hn::SumOfLanes(v, sum_yy));
        const double size = std::sqrt(xx) * std::sqrt(yy);
        if (!(std::abs(xy) > kOrthogonal * size)) continue;
        largest_cosine = std::max(largest_cosine, std::abs(xy) / size);
        const double slope = (yy - xx) / (2 * xy);
        const double steep = std::abs(slope), root = steep < kSteep ? std::sqrt(1 + slope * slope) : steep;
        const double t = std::copysign(1 / (steep + root), slope);
        largest_turn = std::max(largest_turn, std::abs(t));
        const double c = 1 / std::sqrt(1 + t * t);
        const auto cosine = hn::Set(v, c), sine = hn::Set(v, c * t);
        for (Index i = 0; i < stride; i += w) {
          const auto a = hn::LoadU(v, x + i), b = hn::LoadU(v, y + i);
          hn::StoreU(hn::NegMulAdd(sine, b, hn::Mul(cosine, a)), v, x + i);
          hn::StoreU(hn::MulAdd(sine, a, hn::Mul(cosine, b)), v, y + i);
        }
      }
    }
    if (!(largest_cosine * largest_turn > kLast)) return true;
  }
  return false;
}

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {
HWY_EXPORT(orthogonalize_lanes);
bool orthogonalize(double* columns, Index stride, Index rows, Index count) {
  return HWY_DYNAMIC_DISPATCH(orthogonalize_lanes)(columns, stride, rows, count);
}
}  // namespace attsvm::internal
#endif
