#include "margin/power/outer_rows.h"

#include <algorithm>

namespace attsvm::internal {

template <class Real>
void OuterRows<Real>::load(const PowerMatrix<Real>& u, const PowerMatrix<Real>& v, const Index* query, bool turned) {
  u_ = u;
  v_ = v;
  query_ = query;
  turned_ = turned;
}

template <class Real>
void OuterRows<Real>::rotate(const OuterRows& rows, const PowerMatrix<Real>& P, const PowerMatrix<Real>& S) {
  load(rows.u_ * P, rows.v_ * S, rows.query_, rows.turned_);
}

template <class Real>
void OuterRows<Real>::take(const OuterRows& rows, const IndexList& picked) {
  picked_query_.grow(picked.size());
  u_.resize(picked.size(), rows.u_.cols());
  for (Index k = 0; k < picked.size(); ++k) {
    u_.row(k) = rows.u_.row(picked[k]);
    picked_query_[k] = rows.query_[picked[k]];
  }
  v_ = rows.v_;
  query_ = picked_query_.data();
  turned_ = rows.turned_;
}

template <class Real>
void OuterRows<Real>::values(const Vector& W, Vector& x) const {
  const Index left = turned_ ? v_.cols() : u_.cols(), right = turned_ ? u_.cols() : v_.cols();
  const Eigen::Map<const PowerMatrix<Real>> matrix(W.data(), left, right);
  const PowerMatrix<Real> seen = turned_ ? PowerMatrix<Real>(v_ * matrix) : PowerMatrix<Real>(v_ * matrix.transpose());
  x.resize(u_.rows());
  for (Index k = 0; k < u_.rows(); ++k) x(k) = u_.row(k).dot(seen.row(query_[k]));
}

template <class Real>
void OuterRows<Real>::weigh(const Vector& x, Vector& W) const {
  PowerMatrix<Real> sums = PowerMatrix<Real>::Zero(v_.rows(), u_.cols());
  for (Index k = 0; k < u_.rows(); ++k) sums.row(query_[k]) += x(k) * u_.row(k);
  W.resize(u_.cols() * v_.cols());
  if (turned_) {
    Eigen::Map<PowerMatrix<Real>>(W.data(), v_.cols(), u_.cols()).noalias() = v_.transpose() * sums;
  } else {
    Eigen::Map<PowerMatrix<Real>>(W.data(), u_.cols(), v_.cols()).noalias() = sums.transpose() * v_;
  }
}

template <class Real>
void OuterRows<Real>::gram(const Vector& F, const PowerColumns<Real>* C, PowerColumns<Real>& G) const {
  const Index count = u_.rows(), corner = C != nullptr ? C->cols() : 0;
  const Index left = turned_ ? v_.cols() : u_.cols(), right = turned_ ? u_.cols() : v_.cols();
  const Eigen::Map<const PowerMatrix<Real>> given(F.data(), left, right);
  const PowerMatrix<Real> weights = turned_ ? PowerMatrix<Real>(given.transpose()) : PowerMatrix<Real>(given);
  G.resize(pad4(count + 4), count);
  Vector h, c;
  for (Index l = 0; l < count; ++l) {
    const auto v = v_.row(query_[l]);
    for (Index k = l; k < count; ++k) {
      const auto other = v_.row(query_[k]);
      if (k == l || query_[k] != query_[k - 1]) {
        h.noalias() = weights * other.cwiseProduct(v).transpose();
        c = h.cwiseProduct(u_.row(l).transpose());
        if (corner > 0) {
          const Vector seen = *C * other.head(corner).cwiseProduct(u_.row(l).head(corner)).transpose();
          c.head(corner) += v.head(corner).transpose().cwiseProduct(seen);
        }
      }
      G(k, l) = u_.row(k).dot(c);
    }
  }
}

template class OuterRows<long double>;

void OuterRows<double>::load(const PowerMatrix<double>& u, const PowerMatrix<double>& v, const Index* query,
                             bool turned) {
  shape(u.rows(), v.rows(), u.cols(), v.cols(), query, turned);
  const auto copy = [](const auto& from, double* to, Index padded) {
    std::copy_n(from.data(), from.size(), to);
    std::fill(to + from.size(), to + padded, 0.0);
  };
  for (Index k = 0; k < count_; ++k) copy(u.row(k), rows_.delta(k), rows_.dp());
  for (Index i = 0; i < queries_; ++i) copy(v.row(i), rows_.zeta(i), rows_.zp());
  group();
}

void OuterRows<double>::rotate(const OuterRows& rows, const PowerMatrix<double>& P, const PowerMatrix<double>& S) {
  shape(rows.count_, rows.queries_, rows.rows_.d(), rows.rows_.dz(), rows.query_, rows.turned_);
  const auto turn = [&](const PowerMatrix<double>& axes, const double* from, Index count, double* to) {
    const Index size = axes.rows(), padded = pad4(size);
    axes_.fill(size * padded, 0);
    for (Index i = 0; i < size; ++i) std::copy_n(axes.data() + i * size, size, axes_.data() + i * padded);
    multiply(axes_.data(), padded, size, size, from, padded, count, to, padded);
  };
  const RowBlocks from = rows.rows_.view();
  turn(P, from.delta, count_, rows_.delta(0));
  turn(S, from.zeta, queries_, rows_.zeta(0));
  group();
}

void OuterRows<double>::take(const OuterRows& rows, const IndexList& picked) {
  picked_query_.grow(picked.size());
  for (Index k = 0; k < picked.size(); ++k) picked_query_[k] = rows.query_[picked[k]];
  shape(picked.size(), rows.queries_, rows.rows_.d(), rows.rows_.dz(), picked_query_.data(), rows.turned_);
  const RowBlocks from = rows.rows_.view();
  for (Index k = 0; k < picked.size(); ++k) std::copy_n(from.delta + picked[k] * from.dp, from.dp, rows_.delta(k));
  std::copy_n(from.zeta, queries_ * from.zp, rows_.zeta(0));
  group();
}

void OuterRows<double>::shape(Index count, Index queries, Index d, Index dz, const Index* query, bool turned) {
  count_ = count;
  queries_ = queries;
  query_ = query;
  turned_ = turned;
  rows_.shape(count, queries, d, dz);
}

void OuterRows<double>::group() {
  rows_.group(query_, count_, UnitRows::Gram::none);
  W_.fill(rows_.entries(), 0);
  work_.grow(std::max(kOuters * rows_.dp() + 2 * pad4(count_), 13 * rows_.dp() + rows_.zp()));
}

/// W in the layout of the kernels: columns that u multiplies, padded with zeros.
void OuterRows<double>::lay_out(const Vector& W) const {
  const Index d = rows_.d(), dz = rows_.dz(), dp = rows_.dp();
  for (Index j = 0; j < dz; ++j) {
    double* column = W_.data() + j * dp;
    if (turned_) {
      std::copy_n(W.data() + j * d, d, column);
    } else {
      for (Index i = 0; i < d; ++i) column[i] = W(i * dz + j);
    }
  }
}

void OuterRows<double>::values(const Vector& W, Vector& x) const {
  x.resize(count_);
  lay_out(W);
  evaluate(rows_.view(), W_.data(), work_.data(), x.data());
}

void OuterRows<double>::weigh(const Vector& x, Vector& W) const {
  const Index d = rows_.d(), dz = rows_.dz(), dp = rows_.dp();
  internal::weigh(rows_.view(), x.data(), work_.data(), W_.data());
  W.resize(d * dz);
  for (Index j = 0; j < dz; ++j) {
    const double* column = W_.data() + j * dp;
    if (turned_) {
      std::copy_n(column, d, W.data() + j * d);
    } else {
      for (Index i = 0; i < d; ++i) W(i * dz + j) = column[i];
    }
  }
}

void OuterRows<double>::gram(const Vector& F, const PowerColumns<double>* C, PowerColumns<double>& G) const {
  const Index ld = pad4(count_ + 4), corner = C != nullptr ? C->cols() : 0, padded = pad4(corner);
  G.resize(ld, count_);
  lay_out(F);
  corner_.fill(padded * corner, 0);
  for (Index j = 0; j < corner; ++j) std::copy_n(C->col(j).data(), corner, corner_.data() + j * padded);
  weighted_gram(rows_.view(), W_.data(), C != nullptr ? corner_.data() : nullptr, corner, work_.data(), G.data(), ld);
}

}  // namespace attsvm::internal
