#include "margin/nuclear/rows.h"

#include <algorithm>

#include "base/kernels/nuclear.h"

namespace attsvm::internal {
namespace {

/// The vectors of a basis, `size` numbers each without their padding.
auto columns(const QrBasis& basis, Index size) {
  return Eigen::Map<const Eigen::MatrixXd>(basis.q(0), basis.dimension(), basis.size()).topRows(size);
}

/// Columns in the coordinates of the basis (null: padded ones) as columns of `size` numbers.
void expand(const QrBasis* basis, Index size, const Eigen::MatrixXd& U, RowMatrix& out) {
  if (basis != nullptr) {
    out.noalias() = columns(*basis, size) * U.topRows(basis->size());
  } else {
    out = U.topRows(size);
  }
}

}  // namespace

void NuclearRows::load(const MarginProblem& problem, double size, const IndexList* only) {
  problem_ = &problem;
  const Index rows = only != nullptr ? only->size() : problem.rows(), d = problem.d(), dz = problem.dz(), dp = pad4(d),
              zp = pad4(dz);
  const auto groups = static_cast<Index>(problem.groups().size());
  scale_ = size > 0 ? size : 1;
  for (auto* buffer : {&rhs_, &size_}) buffer->grow(rows);
  row_.grow(rows);
  query_.grow(rows);
  equal_.grow(rows);
  delta_.grow(rows * dp);
  zeta_.grow(groups * zp);
  count_ = queries_ = 0;
  with_equations_ = 0;
  Index next = 0;
  for (const MarginGroup& group : problem.groups()) {
    double* zeta = zeta_.data() + queries_ * zp;
    std::copy_n(group.z, dz, zeta);
    std::fill(zeta + dz, zeta + zp, 0.0);
    const double zeta_norm = Eigen::Map<Eigen::VectorXd>(zeta, dz).stableNorm();
    if (zeta_norm == 0) {  // its rows have the value 0 for every W
      for (Index k = group.first_row; only != nullptr && k < group.first_row + group.rows; ++k) only->meets(k, next);
      continue;
    }
    for (Index j = 0; j < dz; ++j) zeta[j] /= zeta_norm;
    const Index before = count_;
    const EquationBasis* equations = take_equations(group);
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (only != nullptr && !only->meets(k, next)) continue;
      double* delta = delta_.data() + count_ * dp;
      double rhs = problem.rhs(k);
      equations == nullptr ? problem.delta(group, k, delta) : equations->row(k, delta, rhs);
      std::fill(delta + d, delta + dp, 0.0);
      const double delta_norm = Eigen::Map<Eigen::VectorXd>(delta, d).stableNorm();
      if (delta_norm == 0) continue;
      for (Index j = 0; j < d; ++j) delta[j] /= delta_norm;
      row_[count_] = k;
      query_[count_] = queries_;
      equal_[count_] = problem.equal(k) ? 1 : 0;
      size_[count_] = delta_norm * zeta_norm;
      rhs_[count_] = rhs / delta_norm / zeta_norm / scale_;
      ++count_;
    }
    if (count_ > before) ++queries_;
  }

  // Writes `count` vectors in the coordinates of what they span, and returns the padded size of the new ones.
  const auto reduce = [&](QrBasis& basis, Buffer<double>& vectors, Index count, Index length) {
    basis.reset(length);
    for (Index k = 0; k < count; ++k) basis.widen(vectors.data() + k * length, length);
    const Index fewer = pad4(basis.size());
    full_.fill(count * fewer, 0.0);
    for (Index k = 0; k < count; ++k) {
      project(basis.q(0), length, basis.size(), vectors.data() + k * length, full_.data() + k * fewer);
    }
    vectors.swap(full_);
    return fewer;
  };
  left_reduced_ = count_ < d;
  right_reduced_ = queries_ < dz;
  left_size_ = left_reduced_ ? reduce(left_, delta_, count_, dp) : dp;
  right_size_ = right_reduced_ ? reduce(right_, zeta_, queries_, zp) : zp;
  lay_out();
}

/// Null: the group has no equations.
const EquationBasis* NuclearRows::take_equations(const MarginGroup& group) {
  if (with_equations_ == equations_.size()) equations_.emplace_back();
  return equations_[with_equations_].load(*problem_, group) ? &equations_[with_equations_++] : nullptr;
}

void NuclearRows::duals_in(const Eigen::VectorXd& dual, double* lambda) {
  dual_ = dual;
  for (std::size_t e = 0; e < with_equations_; ++e) equations_[e].dual_in(dual_.data());
  for (Index k = 0; k < count_; ++k) lambda[k] = dual_(row_[k]) * size_[k];
}

void NuclearRows::duals_out(const double* lambda, Eigen::VectorXd& dual) const {
  dual.setZero(problem_->rows());
  for (Index k = 0; k < count_; ++k) dual(row_[k]) = lambda[k] / size_[k];
  for (std::size_t e = 0; e < with_equations_; ++e) equations_[e].dual_out(dual.data());
}

void NuclearRows::take(const NuclearRows& all, const IndexList& list) {
  problem_ = all.problem_;
  scale_ = all.scale_;
  left_size_ = all.left_size_;
  right_size_ = all.right_size_;
  count_ = list.size();
  queries_ = 0;
  for (auto* buffer : {&rhs_, &size_}) buffer->grow(count_);
  row_.grow(count_);
  query_.grow(count_);
  equal_.grow(count_);
  delta_.grow(count_ * left_size_);
  zeta_.grow(all.queries_ * right_size_);
  for (Index k = 0, last = -1; k < count_; ++k) {
    const Index from = list[k];
    if (all.query_[from] != last) {
      last = all.query_[from];
      std::copy_n(all.zeta(last), right_size_, zeta_.data() + queries_ * right_size_);
      ++queries_;
    }
    row_[k] = all.row_[from];
    query_[k] = queries_ - 1;
    equal_[k] = all.equal_[from];
    rhs_[k] = all.rhs_[from];
    size_[k] = all.size_[from];
    std::copy_n(all.delta(from), left_size_, delta_.data() + k * left_size_);
  }
  lay_out();
}

void NuclearRows::lay_out() {
  zeta_across_.grow(queries_ * right_size_);
  for (Index i = 0; i < queries_; ++i) {
    for (Index j = 0; j < right_size_; ++j) zeta_across_[j * queries_ + i] = zeta(i)[j];
  }
  projected_.grow(left_size_ * queries_);
  collected_.grow(left_size_ * queries_);
}

void NuclearRows::values(const Eigen::MatrixXd& Y, double* out) {
  multiply(Y.data(), left_size_, right_size_, zeta_.data(), right_size_, queries_, projected_.data());
  for (Index k = 0; k < count_;) {
    const Index first = k, i = query_[k];
    while (k < count_ && query_[k] == i) ++k;
    project(delta(first), left_size_, k - first, projected_.data() + i * left_size_, out + first);
  }
}

void NuclearRows::weigh(const double* x, Eigen::MatrixXd& A) {
  A.resize(left_size_, right_size_);
  for (Index k = 0; k < count_;) {
    const Index first = k, i = query_[k];
    while (k < count_ && query_[k] == i) ++k;
    combine(delta(first), left_size_, k - first, x + first, collected_.data() + i * left_size_);
  }
  multiply(collected_.data(), left_size_, queries_, zeta_across_.data(), queries_, right_size_, A.data());
}

void NuclearRows::weights_in(const RowMatrix& W, Eigen::MatrixXd& Y) const {
  Y.setZero(left_size_, right_size_);
  const Eigen::MatrixXd half =
      left_reduced_ ? Eigen::MatrixXd(columns(left_, W.rows()).transpose() * (W / scale_)) : W / scale_;
  if (right_reduced_) {
    Y.topLeftCorner(half.rows(), right_.size()).noalias() = half * columns(right_, W.cols());
  } else {
    Y.topLeftCorner(half.rows(), W.cols()) = half;
  }
}

void NuclearRows::left_out(const Eigen::MatrixXd& U, RowMatrix& K) const {
  expand(left_reduced_ ? &left_ : nullptr, problem_->d(), U, K);
}

void NuclearRows::right_out(const Eigen::MatrixXd& V, RowMatrix& Q) const {
  expand(right_reduced_ ? &right_ : nullptr, problem_->dz(), V, Q);
}

}  // namespace attsvm::internal
