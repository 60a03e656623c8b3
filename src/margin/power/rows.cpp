#include "margin/power/rows.h"

#include "base/qr_basis.h"
#include "margin/rows/difference.h"

namespace attsvm::internal {

template <class Real>
void PowerRows<Real>::gather(const MarginProblem& problem, const IndexList* list) {
  const Index most = list != nullptr ? list->size() : problem.rows(), d = problem.d(), dz = problem.dz();
  row_.grow(most);
  query_.grow(most);
  equal_.grow(most);
  for (auto* vector : {&b_, &size_}) vector->resize(most);
  delta_.resize(most, d);
  zeta_.resize(static_cast<Index>(problem.groups().size()), dz);
  count_ = queries_ = inequalities_ = 0;
  Index member = 0;
  Vector delta(d), zeta(dz);
  for (const MarginGroup& group : problem.groups()) {
    zeta = ConstVector(group.z, dz).template cast<Real>();
    const Real zeta_norm = zeta.stableNorm();
    const Index before = count_;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (list != nullptr && !list->meets(k, member)) continue;
      row_difference(problem, group, k, delta.data());
      const Real delta_norm = delta.stableNorm();
      if (delta_norm == 0 || zeta_norm == 0) continue;  // its value is 0 for every W
      delta_.row(count_) = delta.transpose() / delta_norm;
      row_[count_] = k;
      query_[count_] = queries_;
      equal_[count_] = problem.equal(k) ? 1 : 0;
      inequalities_ += problem.equal(k) ? 0 : 1;
      size_(count_) = delta_norm * zeta_norm;
      b_(count_) = problem.rhs(k) / delta_norm / zeta_norm / scale_;
      ++count_;
    }
    if (count_ > before) zeta_.row(queries_++) = zeta.transpose() / zeta_norm;
  }
  for (auto* vector : {&b_, &size_}) vector->conservativeResize(count_);
  delta_.conservativeResize(count_, d);
  zeta_.conservativeResize(queries_, dz);
}

/// Writes the vectors, one per row, in the coordinates of what they span. False: there are too many for that to help.
template <class Real>
bool PowerRows<Real>::reduce(Matrix& vectors, Matrix& basis) {
  const Index size = vectors.cols(), padded = (size + 3) / 4 * 4;
  if (vectors.rows() >= size) return false;
  QrBasis span;
  span.reset(padded);
  Eigen::VectorXd vector = Eigen::VectorXd::Zero(padded);
  for (Index k = 0; k < vectors.rows(); ++k) {
    vector.head(size) = vectors.row(k).transpose().template cast<double>();
    span.widen(vector.data(), size);
  }
  basis = Eigen::Map<const RowMatrix>(span.q(0), span.size(), padded).leftCols(size).template cast<Real>();
  vectors = (vectors * basis.transpose()).eval();
  return true;
}

template <class Real>
void PowerRows<Real>::rotate(const OuterRows<Real>& products, const Matrix& U, const Matrix& V,
                             OuterRows<Real>& rotated) const {
  rotated.rotate(products, swapped_ ? V : U, swapped_ ? U : V);
}

template <class Real>
void PowerRows<Real>::write(Index k, Vector& row) const {
  row.resize(unknowns());
  for (Index i = 0; i < left_; ++i) {
    for (Index j = 0; j < right_; ++j) row(i * right_ + j) = entry(k, i, j);
  }
}

template <class Real>
void PowerRows<Real>::load(const MarginProblem& problem, NormFamily family, Real scale, const IndexList* list) {
  scale_ = scale;
  rows_of_problem_ = problem.rows();
  gather(problem, list);
  const bool turns = family == NormFamily::schatten;  // the norm allows it
  left_reduced_ = turns && reduce(delta_, left_basis_);
  right_reduced_ = turns && reduce(zeta_, right_basis_);
  swapped_ = !turns || delta_.cols() <= zeta_.cols();  // where there is a choice, as the kernels have it
  left_ = swapped_ ? zeta_.cols() : delta_.cols();
  right_ = swapped_ ? delta_.cols() : zeta_.cols();
  products_.load(delta_, zeta_, query_.data(), swapped_);
}

template <class Real>
void PowerRows<Real>::weights_in(const RowMatrix& W, Vector& w) const {
  Matrix inside = W.template cast<Real>() / scale_;
  if (left_reduced_) inside = (left_basis_ * inside).eval();
  if (right_reduced_) inside = (inside * right_basis_.transpose()).eval();
  if (swapped_) inside.transposeInPlace();
  w = Eigen::Map<const Vector>(inside.data(), inside.size());
}

template <class Real>
void PowerRows<Real>::weights_out(const Vector& w, RowMatrix& W) const {
  Matrix inside = Eigen::Map<const Matrix>(w.data(), left_, right_) * scale_;
  if (swapped_) inside.transposeInPlace();
  if (left_reduced_) inside = (left_basis_.transpose() * inside).eval();
  if (right_reduced_) inside = (inside * right_basis_).eval();
  W = inside.template cast<double>();
}

template <class Real>
void PowerRows<Real>::duals_in(const Eigen::VectorXd& dual, Vector& lambda) const {
  lambda.resize(count_);
  for (Index k = 0; k < count_; ++k) lambda(k) = dual(row_[k]) * size_(k);
}

template <class Real>
void PowerRows<Real>::duals_out(const Vector& lambda, Eigen::VectorXd& dual) const {
  dual.setZero(rows_of_problem_);
  for (Index k = 0; k < count_; ++k) dual(row_[k]) = static_cast<double>(lambda(k) / size_(k));
}

template class PowerRows<double>;
template class PowerRows<long double>;

}  // namespace attsvm::internal
