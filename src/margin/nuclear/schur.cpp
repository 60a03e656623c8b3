#include "margin/nuclear/schur.h"

#include <cmath>
#include <numbers>

#include "base/blas.h"
#include "base/kernels/gram.h"

namespace attsvm::internal {
namespace {

constexpr double kHalf = std::numbers::sqrt2 / 2;  // length one for the symmetric pairs of the basis of Y
constexpr double kRegular = 1e-13;                 // added to unit diagonals that OpenBLAS factorises

}  // namespace

void NuclearSchur::choose(const NuclearRows& rows, const Index* list, Index count) {
  rows_ = &rows;
  count_ = count;
  ld_ = pad4(count);
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
  with_blas_ = count >= kBlasRows;
  size_matrix(0);
}

void NuclearSchur::size_matrix(Index border) {
  ldg_ = pad4(count_ + 1 + border);
  G_.grow(ldg_ * ld_);
  scaled_.grow(ldg_);
}

/// Mδ, δᵀM₁₂ζ and ζᵀM₂₂ζ for the blocks of M.
void NuclearSchur::see_through(const Eigen::MatrixXd& M, double* seen, double* coupled, double* right) {
  const Index P = rows_->left(), Q = rows_->right(), n = rows_->queries(), N = P + Q;
  corner_.grow(std::max(P, Q) * std::max(P, Q));
  product_.grow(std::max(std::max(P, Q) * n, n * n));
  const auto corner = [&](Index row, Index column, Index rows, Index columns) {
    for (Index j = 0; j < columns; ++j) std::copy_n(M.data() + (column + j) * N + row, rows, corner_.data() + j * rows);
  };
  corner(0, 0, P, P);
  multiply(corner_.data(), P, P, delta_.data(), P, count_, seen);
  corner(0, P, P, Q);
  multiply(corner_.data(), P, Q, rows_->zeta(0), Q, n, product_.data());
  multiply(across_.data(), ld_, P, product_.data(), P, n, coupled);
  corner(P, P, Q, Q);
  multiply(corner_.data(), Q, Q, rows_->zeta(0), Q, n, product_.data());
  corner_.grow(n * n);
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < n; ++i) corner_[j * n + i] = dot(rows_->zeta(i), product_.data() + j * Q, Q);
  }
  spread(right);
}

/// Expands corner_, with one number per pair of queries, to one number per row and query.
void NuclearSchur::spread(double* right) {
  const Index n = rows_->queries();
  for (Index j = 0; j < n; ++j, right += ld_) {
    for (Index k = 0; k < count_; ++k) right[k] = corner_[j * n + query_[k]];
    std::fill(right + count_, right + ld_, 0.0);
  }
}

void NuclearSchur::build(const Eigen::MatrixXd& X, const Eigen::MatrixXd& T, double factor, const double* diagonal) {
  const bool alike = &X == &T;
  see_through(T, T_.data(), t_.data(), right_T_.data());
  if (!alike) see_through(X, X_.data(), x_.data(), right_X_.data());
  form(factor, alike ? nullptr : across_.data(), rows_->left());
  scale_matrix(diagonal);
}

/// Forms the matrix from its parts; `low` has Yᵀδ, `rank` numbers per row, with X = Y S Yᵀ (null: X is T).
void NuclearSchur::form(double factor, const double* low, Index rank) {
  schur_matrix({.rows = count_,
                .ld = ld_,
                .features = rows_->left(),
                .rank = rank,
                .across = across_.data(),
                .T = T_.data(),
                .low = low,
                .X = X_.data(),
                .right_X = low == nullptr ? right_T_.data() : right_X_.data(),
                .right_T = right_T_.data(),
                .x = x_.data(),
                .t = t_.data(),
                .query = query_.data()},
               factor, work_.data(), G_.data(), ldg_);
}

void NuclearSchur::scale_matrix(const double* diagonal) {
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

void NuclearSchur::mirror() { internal::mirror(G_.data(), ldg_, count_); }

/// False: a pivot was not positive; the matrix is unchanged.
bool NuclearSchur::factor_by_blas() {
  backup_.grow(ldg_ * count_);
  std::copy_n(G_.data(), ldg_ * count_, backup_.data());
  for (Index k = 0; k < count_; ++k) G_[k * (ldg_ + 1)] += kRegular;
  if (cholesky_of_columns(count_, G_.data(), ldg_)) return true;
  G_.swap(backup_);
  return false;
}

void NuclearSchur::factor(double tiny) {
  with_blas_ = with_blas_ && factor_by_blas();
  if (!with_blas_) factor_solve(G_.data(), ldg_, count_, tiny, scaled_.data());
}

void NuclearSchur::solve(double* x) const {
  for (Index k = 0; k < count_; ++k) scaled_[k] = x[k] * scale_[k];
  solve_scaled(scaled_.data());
  for (Index k = 0; k < count_; ++k) x[k] = scaled_[k] * scale_[k];
}

void NuclearSchur::solve_scaled(double* x) const {
  if (with_blas_) {
    for (const bool transpose : {false, true}) solve_columns(transpose, count_, G_.data(), ldg_, 1, x, count_);
  } else {
    solve_again(G_.data(), ldg_, count_, x);
  }
}

void NuclearSchur::build_on_face(const Eigen::MatrixXd& U, const Eigen::MatrixXd& V, const Eigen::VectorXd& sigma,
                                 const Eigen::MatrixXd& T) {
  const Index P = rows_->left(), Q = rows_->right(), n = rows_->queries(), r = sigma.size();
  size_matrix(r * (r + 1) / 2);
  see_through(T, T_.data(), t_.data(), right_T_.data());
  low_.grow(ld_ * r);
  multiply(across_.data(), ld_, P, U.data(), P, r, low_.data());  // δᵀU
  left_ = Eigen::Map<const Eigen::MatrixXd>(low_.data(), ld_, r).topRows(count_).transpose();
  right_.noalias() = V.transpose() * Eigen::Map<const Eigen::MatrixXd>(rows_->zeta(0), Q, n);
  small_.noalias() = sigma.asDiagonal() * right_;
  X_.grow(r * count_);
  Eigen::Map<Eigen::MatrixXd>(X_.data(), r, count_).noalias() = sigma.asDiagonal() * left_;
  multiply(low_.data(), ld_, r, small_.data(), r, n, x_.data());
  corner_.grow(n * n);
  Eigen::Map<Eigen::MatrixXd>(corner_.data(), n, n).noalias() = right_.transpose() * small_;
  spread(right_X_.data());
  form(1, low_.data(), r);
  take_border();
  for (Index l = 0; l < count_; ++l) {
    for (Index k = l; k < count_; ++k) G_[l * ldg_ + k] += squares_(k, l);
  }
  scale_matrix(nullptr);
}

/// Computes the border in an orthonormal basis of symmetric Y, and adds its products to M. That changes nothing where
/// the equations of the border hold, but M alone is singular where the rows determine W on the face.
void NuclearSchur::take_border() {
  const Index r = left_.rows(), pairs = r * (r + 1) / 2;
  border_.setZero(ld_, pairs);
  for (Index k = 0; k < count_; ++k) {
    const double *a = left_.data() + k * r, *c = right_.data() + query_[k] * r;
    for (Index q = 0, t = 0; q < r; ++q) {
      for (Index p = 0; p < q; ++p) border_(k, t++) = (a[p] * c[q] + a[q] * c[p]) * kHalf;
      border_(k, t++) = a[q] * c[q];
    }
  }
  small_ = border_.transpose();
  squares_.resize(ld_, count_);
  multiply(border_.data(), ld_, pairs, small_.data(), pairs, count_, squares_.data());
}

bool NuclearSchur::factor_on_face(double tiny) {
  const Index pairs = border_.cols();
  for (Index t = 0; t < pairs; ++t) {
    for (Index k = 0; k < count_; ++k) border_(k, t) *= scale_[k];
  }
  half_solved_.resize(ld_, pairs);
  with_blas_ = with_blas_ && factor_by_blas();
  if (with_blas_) {
    half_solved_ = border_;
    solve_columns(false, count_, G_.data(), ldg_, pairs, half_solved_.data(), ld_);
  } else {
    for (Index k = 0; k < count_; ++k) {
      for (Index t = 0; t < pairs; ++t) G_[k * ldg_ + count_ + t] = border_(k, t);
    }
    factor_solve(G_.data(), ldg_, count_, tiny, scaled_.data());
    half_solved_.bottomRows(ld_ - count_).setZero();
    for (Index k = 0; k < count_; ++k) {
      const double root = std::sqrt(1 / G_[k * (ldg_ + 1)]);
      for (Index t = 0; t < pairs; ++t) half_solved_(k, t) = root * G_[k * ldg_ + count_ + t];
    }
  }
  small_.noalias() = half_solved_.transpose() * half_solved_;
  small_factor_.compute(small_);
  return small_factor_.info() == Eigen::Success;
}

void NuclearSchur::solve_on_face(double* x, Eigen::MatrixXd& Y) {
  const Index r = left_.rows();
  y_.resize(border_.cols());
  for (Index q = 0, t = 0; q < r; ++q) {
    for (Index p = 0; p < q; ++p) y_(t++) = (Y(p, q) + Y(q, p)) * kHalf;
    y_(t++) = Y(q, q);
  }
  column_.noalias() = border_ * y_;
  for (Index k = 0; k < count_; ++k) column_(k) += x[k] * scale_[k];
  solve_scaled(column_.data());
  y_ = border_.transpose() * column_ - y_;
  small_factor_.solveInPlace(y_);
  correction_.noalias() = half_solved_ * y_;
  if (with_blas_) {
    solve_columns(true, count_, G_.data(), ldg_, 1, correction_.data(), count_);
  } else {
    for (Index k = 0; k < count_; ++k) {
      const double pivot = G_[k * (ldg_ + 1)];
      correction_(k) = std::isfinite(pivot) ? correction_(k) * std::sqrt(pivot) : 0;
    }
    solve_upper(G_.data(), ldg_, count_, correction_.data());
  }
  for (Index k = 0; k < count_; ++k) x[k] = (column_(k) - correction_(k)) * scale_[k];
  for (Index q = 0, t = 0; q < r; ++q) {
    for (Index p = 0; p < q; ++p) Y(p, q) = Y(q, p) = y_(t++) * kHalf;
    Y(q, q) = y_(t++);
  }
}

}  // namespace attsvm::internal
