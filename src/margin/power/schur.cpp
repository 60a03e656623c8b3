#include "margin/power/schur.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <limits>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

constexpr Index kBlock = 256;  // rows of a product that are formed at once

using WideMatrix = PowerMatrix<long double>;

/// The lower triangle of A Aᵀ
void square(const RowMatrix& A, RowMatrix& product) {
  const auto block = [&](Index i, Index j, Index rows, Index columns) {
    gemm(false, true, rows, columns, A.cols(), 1, A.row(i).data(), A.cols(), A.row(j).data(), A.cols(), 0,
         product.row(i).data() + j, product.cols());
  };
  for (Index i = 0; i < A.rows(); i += kBlock) {
    const Index rows = std::min(kBlock, A.rows() - i);
    if (i > 0) block(i, 0, rows, i);
    block(i, i, rows, rows);
  }
}
void square(const WideMatrix& A, WideMatrix& product) { product.noalias() = A * A.transpose(); }
bool factor(RowMatrix& A) { return cholesky(A.rows(), A.data(), A.rows()); }
bool factor(WideMatrix& A) { return Eigen::LLT<Eigen::Ref<WideMatrix>>(A).info() == Eigen::Success; }

}  // namespace

template <class Real>
bool form_schur(const PowerMatrix<Real>& R, const PowerVector<Real>& F, const PowerVector<Real>& D,
                PowerMatrix<Real>& scaled, PowerMatrix<Real>& schur) {
  constexpr Real kRegular = 64 * std::numeric_limits<Real>::epsilon();
  scaled = R * F.cwiseSqrt().asDiagonal();
  schur.resize(R.rows(), R.rows());
  square(scaled, schur);
  const Real largest = schur.diagonal().maxCoeff();
  for (Index k = 0; k < R.rows(); ++k) schur(k, k) += D(k) + kRegular * std::max(schur(k, k), kRegular * largest);
  return factor(schur);
}

template <>
void solve_schur(const PowerMatrix<double>& schur, PowerVector<double>& x) {
  solve_lower(false, schur.rows(), schur.data(), schur.rows(), x.data());
  solve_lower(true, schur.rows(), schur.data(), schur.rows(), x.data());
}

template <>
void solve_schur(const PowerMatrix<long double>& schur, PowerVector<long double>& x) {
  schur.triangularView<Eigen::Lower>().solveInPlace(x);
  schur.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
}

template bool form_schur(const PowerMatrix<double>&, const PowerVector<double>&, const PowerVector<double>&,
                         PowerMatrix<double>&, PowerMatrix<double>&);
template bool form_schur(const PowerMatrix<long double>&, const PowerVector<long double>&,
                         const PowerVector<long double>&, PowerMatrix<long double>&, PowerMatrix<long double>&);

}  // namespace attsvm::internal
