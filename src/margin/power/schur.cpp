#include "margin/power/schur.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

constexpr Index kBlasRows = 160;  // rows from which OpenBLAS is faster than our own loops

template <class Matrix>
using Strided = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;

}  // namespace

template <class Real>
bool PowerSchur<Real>::form(const PowerRows<Real>& rows, const Frame<Real>& frame, const Vector& F, const Vector& D,
                            const IndexList* picked) {
  constexpr Real kRegular = 64 * std::numeric_limits<Real>::epsilon();
  const OuterRows<Real>* products = &rows.products();
  if (picked != nullptr) {
    picked_.take(rows.products(), *picked);
    products = &picked_;
  }
  count_ = D.size();
  if (frame.entrywise()) {
    products->gram(F, nullptr, G_);
  } else {
    rows.rotate(*products, frame.U(), frame.V(), rotated_);
    split(frame, F);
    rotated_.gram(straight_, &crossed_, G_);
  }
  ld_ = G_.rows();
  Real largest = 0;
  for (Index k = 0; k < count_; ++k) largest = std::max(largest, at(k, k));
  for (Index k = 0; k < count_; ++k) at(k, k) += D(k) + kRegular * std::max(at(k, k), kRegular * largest);
  return factor();
}

/// With F_s of the symmetric and F_a of the antisymmetric part of a pair of entries m, m′ and n, n′, their share is
/// ½(F_s + F_a)(mn + m′n′) + ½(F_s − F_a)(mn′ + m′n).
template <class Real>
void PowerSchur<Real>::split(const Frame<Real>& frame, const Vector& F) {
  const Index right = frame.value_count();
  straight_ = F;
  crossed_.setZero(right, right);
  for (Index i = 0; i < right; ++i) {
    for (Index j = i + 1; j < right; ++j) {
      const Index above = i * right + j, below = j * right + i;
      straight_(above) = straight_(below) = (F(above) + F(below)) / 2;
      crossed_(i, j) = crossed_(j, i) = (F(above) - F(below)) / 2;
    }
  }
}

template <class Real>
bool PowerSchur<Real>::factor() {
  if constexpr (std::is_same_v<Real, double>) {
    with_blas_ = count_ >= kBlasRows;
    if (with_blas_) return cholesky_of_columns(count_, G_.data(), ld_);
    // What is below the matrix counts as right-hand sides.
    for (Index l = 0; l < count_; ++l) std::fill(&at(count_, l), G_.data() + (l + 1) * ld_, 0.0);
    scratch_.resize(count_);
    factor_solve(G_.data(), ld_, count_, 0, scratch_.data());
    for (Index k = 0; k < count_; ++k) {
      if (!std::isfinite(at(k, k))) return false;  // its pivot was not positive
    }
    return true;
  } else {
    Strided<PowerColumns<Real>> G(G_.data(), count_, count_, Eigen::OuterStride<>(ld_));
    return Eigen::LLT<Eigen::Ref<PowerColumns<Real>>>(G).info() == Eigen::Success;
  }
}

template <class Real>
void PowerSchur<Real>::solve(Vector& x) const {
  if constexpr (std::is_same_v<Real, double>) {
    if (with_blas_) {
      solve_columns(false, count_, G_.data(), ld_, 1, x.data(), count_);
      solve_columns(true, count_, G_.data(), ld_, 1, x.data(), count_);
    } else {
      solve_again(G_.data(), ld_, count_, x.data());
    }
  } else {
    const Strided<const PowerColumns<Real>> G(G_.data(), count_, count_, Eigen::OuterStride<>(ld_));
    G.template triangularView<Eigen::Lower>().solveInPlace(x);
    G.transpose().template triangularView<Eigen::Upper>().solveInPlace(x);
  }
}

template class PowerSchur<double>;
template class PowerSchur<long double>;

}  // namespace attsvm::internal
