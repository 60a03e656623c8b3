#include "margin/nuclear_schur.h"

#include <cmath>

#include "base/blas.h"

namespace attsvm {
namespace {

constexpr Index kBlasRows = 160;    // from here OpenBLAS factorises faster than our own loops
constexpr double kRegular = 1e-13;  // added to unit diagonals when OpenBLAS meets a pivot that is not positive

}  // namespace

void NuclearSchur::choose(const NuclearRows& rows, const Index* list, Index count) {
  rows_ = &rows;
  count_ = count;
  ld_ = pad4(count);
  ldg_ = pad4(count + 1);
  const Index P = rows.left(), n = rows.queries();
  query_.grow(count);
  across_.grow(ld_ * P);
  if (list != nullptr) delta_.grow(count * P);
  for (Index k = 0; k < count; ++k) {
    const Index row = list == nullptr ? k : list[k];
    query_[k] = rows.query(row);
    const double* delta = rows.delta(row);
    if (list != nullptr) std::copy_n(delta, P, delta_.data() + k * P);
    for (Index f = 0; f < P; ++f) across_[f * ld_ + k] = delta[f];
  }
  for (Index f = 0; f < P; ++f) std::fill(across_.data() + f * ld_ + count, across_.data() + (f + 1) * ld_, 0.0);
  if (list == nullptr) {
    delta_.grow(count * P);
    std::copy_n(rows.delta(0), count * P, delta_.data());
  }
  for (auto* buffer : {&right_X_, &right_T_, &x_, &t_}) buffer->grow(ld_ * n);
  for (auto* buffer : {&T_, &X_}) buffer->grow(count * P);
  work_.grow(8 * ld_);
  scale_.grow(count);
  scaled_.grow(ldg_);
  G_.grow(ldg_ * ld_);
  with_blas_ = count >= kBlasRows;
}

void NuclearSchur::build(const Eigen::MatrixXd& X, const Eigen::MatrixXd& T, double factor, const double* diagonal) {
  const Index P = rows_->left(), Q = rows_->right(), n = rows_->queries(), N = P + Q;
  corner_.grow(std::max(P, Q) * std::max(P, Q));
  product_.grow(std::max(std::max(P, Q) * n, n * n));
  const auto corner = [&](const Eigen::MatrixXd& M, Index row, Index column, Index rows, Index columns) {
    for (Index j = 0; j < columns; ++j) std::copy_n(M.data() + (column + j) * N + row, rows, corner_.data() + j * rows);
  };
  for (const bool first : {true, false}) {
    const Eigen::MatrixXd& M = first ? X : T;
    corner(M, 0, 0, P, P);
    multiply(corner_.data(), P, P, delta_.data(), P, count_, first ? X_.data() : T_.data());
    corner(M, 0, P, P, Q);
    multiply(corner_.data(), P, Q, rows_->zeta(0), Q, n, product_.data());
    multiply(across_.data(), ld_, P, product_.data(), P, n, first ? x_.data() : t_.data());
    corner(M, P, P, Q, Q);
    multiply(corner_.data(), Q, Q, rows_->zeta(0), Q, n, product_.data());
    double* right = first ? right_X_.data() : right_T_.data();
    for (Index j = 0; j < n; ++j) {
      double value = 0;
      for (Index k = 0; k < count_; ++k) {
        if (k == 0 || query_[k] != query_[k - 1]) value = dot(rows_->zeta(query_[k]), product_.data() + j * Q, Q);
        right[j * ld_ + k] = value;
      }
      std::fill(right + j * ld_ + count_, right + (j + 1) * ld_, 0.0);
    }
  }
  schur_matrix({.rows = count_,
                .ld = ld_,
                .features = P,
                .across = across_.data(),
                .T = T_.data(),
                .X = X_.data(),
                .right_X = right_X_.data(),
                .right_T = right_T_.data(),
                .x = x_.data(),
                .t = t_.data(),
                .query = query_.data()},
               factor, work_.data(), G_.data(), ldg_);
  for (Index k = 0; k < count_; ++k) {
    double& pivot = G_[k * (ldg_ + 1)];
    if (diagonal != nullptr) pivot += diagonal[k];
    scale_[k] = pivot > 0 ? 1 / std::sqrt(pivot) : 0;
  }
  for (Index l = 0; l < count_; ++l) {
    double* column = G_.data() + l * ldg_;
    for (Index k = l; k < count_; ++k) column[k] *= scale_[k] * scale_[l];
    std::fill(column + count_, column + ldg_, 0.0);
  }
}

void NuclearSchur::factor(double tiny) {
  if (with_blas_) {
    backup_.grow(ldg_ * count_);
    std::copy_n(G_.data(), ldg_ * count_, backup_.data());
    for (Index k = 0; k < count_; ++k) G_[k * (ldg_ + 1)] += kRegular;
    if (cholesky_of_columns(count_, G_.data(), ldg_)) return;
    with_blas_ = false;
    G_.swap(backup_);
  }
  factor_solve(G_.data(), ldg_, count_, tiny, scaled_.data());
}

void NuclearSchur::solve(double* x) const {
  for (Index k = 0; k < count_; ++k) scaled_[k] = x[k] * scale_[k];
  if (with_blas_) {
    solve_columns(count_, G_.data(), ldg_, scaled_.data());
  } else {
    solve_again(G_.data(), ldg_, count_, scaled_.data());
  }
  for (Index k = 0; k < count_; ++k) x[k] = scaled_[k] * scale_[k];
}

}  // namespace attsvm
