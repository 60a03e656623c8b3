// base/blas.h without OpenBLAS, for a machine where there is none: Eigen's products and decompositions.
#include "base/blas.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>

namespace attsvm::internal {
namespace {

template <class Real>
using Rows = Eigen::Map<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
template <class Real>
using FixedRows =
    Eigen::Map<const Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
using Columns = Eigen::Map<Eigen::MatrixXd, 0, Eigen::OuterStride<>>;
using FixedColumns = Eigen::Map<const Eigen::MatrixXd, 0, Eigen::OuterStride<>>;

Eigen::Index narrow(Index n) { return static_cast<Eigen::Index>(n); }
Eigen::OuterStride<> apart(Index stride) { return Eigen::OuterStride<>(narrow(stride)); }

template <class Real>
void product(bool transpose_a, bool transpose_b, Index m, Index n, Index k, Real alpha, const Real* A, Index lda,
             const Real* B, Index ldb, Real beta, Real* C, Index ldc) {
  const FixedRows<Real> a(A, narrow(transpose_a ? k : m), narrow(transpose_a ? m : k), apart(lda));
  const FixedRows<Real> b(B, narrow(transpose_b ? n : k), narrow(transpose_b ? k : n), apart(ldb));
  Rows<Real> c(C, narrow(m), narrow(n), apart(ldc));
  if (beta == 0) {
    c.setZero();  // as in BLAS: C may hold NaN
  } else if (beta != 1) {
    c *= beta;
  }
  if (transpose_a && transpose_b) {
    c.noalias() += alpha * a.transpose() * b.transpose();
  } else if (transpose_a) {
    c.noalias() += alpha * a.transpose() * b;
  } else if (transpose_b) {
    c.noalias() += alpha * a * b.transpose();
  } else {
    c.noalias() += alpha * a * b;
  }
}

template <class Matrix>
bool factor(Matrix A) {
  return Eigen::internal::llt_inplace<double, Eigen::Lower>::blocked(A) < 0;
}

}  // namespace

void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, double alpha, const double* A, Index lda,
          const double* B, Index ldb, double beta, double* C, Index ldc) {
  product(transpose_a, transpose_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, float alpha, const float* A, Index lda,
          const float* B, Index ldb, float beta, float* C, Index ldc) {
  product(transpose_a, transpose_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

bool cholesky(Index n, double* A, Index lda) { return factor(Rows<double>(A, narrow(n), narrow(n), apart(lda))); }

bool cholesky_of_columns(Index n, double* A, Index lda) { return factor(Columns(A, narrow(n), narrow(n), apart(lda))); }

void solve_columns(bool transpose, Index n, const double* L, Index ldl, Index count, double* X, Index ldx) {
  const FixedColumns l(L, narrow(n), narrow(n), apart(ldl));
  Columns x(X, narrow(n), narrow(count), apart(ldx));
  if (transpose) {
    l.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
  } else {
    l.triangularView<Eigen::Lower>().solveInPlace(x);
  }
}

bool symmetric_eigenvalues(bool vectors, Index n, double* A, double* values) {
  Eigen::Map<Eigen::MatrixXd> matrix(A, narrow(n), narrow(n));
  // LAPACK reads the upper triangle of columns, Eigen the lower one.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      matrix.transpose(), vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Eigen::VectorXd>(values, narrow(n)) = solver.eigenvalues();
  if (vectors) matrix = solver.eigenvectors();
  return true;
}

bool singular_values(bool vectors, Index m, Index n, double* A, double* sigma, double* U, double* Vt) {
  const Eigen::Index small = narrow(std::min(m, n));
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(Eigen::Map<Eigen::MatrixXd>(A, narrow(m), narrow(n)),
                                              vectors ? Eigen::ComputeThinU | Eigen::ComputeThinV : 0);
  if (svd.info() != Eigen::Success) return false;  // it leaves its arrays as they were
  Eigen::Map<Eigen::VectorXd>(sigma, small) = svd.singularValues();
  if (!vectors) return true;
  Eigen::Map<Eigen::MatrixXd>(U, narrow(m), small) = svd.matrixU();
  Eigen::Map<Eigen::MatrixXd>(Vt, small, narrow(n)) = svd.matrixV().transpose();
  return true;
}

void divide_by_transposed_lower(Index m, Index n, const double* L, Index ldl, double* B, Index ldb) {
  const FixedRows<double> l(L, narrow(n), narrow(n), apart(ldl));
  Rows<double> b(B, narrow(m), narrow(n), apart(ldb));
  l.transpose().triangularView<Eigen::Upper>().solveInPlace<Eigen::OnTheRight>(b);
}

void solve_lower(bool transpose, Index n, const double* L, Index ldl, double* x) {
  const FixedRows<double> l(L, narrow(n), narrow(n), apart(ldl));
  Eigen::Map<Eigen::VectorXd> vector(x, narrow(n));
  if (transpose) {
    l.transpose().triangularView<Eigen::Upper>().solveInPlace(vector);
  } else {
    l.triangularView<Eigen::Lower>().solveInPlace(vector);
  }
}

SingleThreadBlas::SingleThreadBlas() = default;
SingleThreadBlas::~SingleThreadBlas() = default;

}  // namespace attsvm::internal
