#include "margin/nuclear/rows.h"

#include <algorithm>

#include "base/kernels/nuclear.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {

void NuclearRows::load(const MarginProblem& problem, double size) {
  problem_ = &problem;
  const Index rows = problem.rows(), d = problem.d(), dz = problem.dz(), dp = pad4(d), zp = pad4(dz);
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
  for (const MarginGroup& group : problem.groups()) {
    double* zeta = zeta_.data() + queries_ * zp;
    std::copy_n(group.z, dz, zeta);
    std::fill(zeta + dz, zeta + zp, 0.0);
    const double zeta_norm = Eigen::Map<Eigen::VectorXd>(zeta, dz).stableNorm();
    if (zeta_norm == 0) continue;  // its rows have the value 0 for every W
    for (Index j = 0; j < dz; ++j) zeta[j] /= zeta_norm;
    const Index before = count_;
    const EquationBasis* equations = take_equations(group);
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
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

  left_reduced_ = count_ < d;
  right_reduced_ = queries_ < dz;
  left_size_ = dp;
  right_size_ = zp;
  if (left_reduced_) {
    left_.reset(dp);
    for (Index k = 0; k < count_; ++k) {
      if (left_.project(delta_.data() + k * dp) > 8 * kEpsilon) left_.push();
    }
    left_size_ = pad4(left_.size());
    full_.grow(count_ * left_size_);
    std::fill_n(full_.data(), count_ * left_size_, 0.0);
    for (Index k = 0; k < count_; ++k)
      project(left_.q(0), dp, left_.size(), delta_.data() + k * dp, full_.data() + k * left_size_);
    delta_.swap(full_);
  }
  if (right_reduced_) {
    right_.reset(zp);
    for (Index i = 0; i < queries_; ++i) {
      if (right_.project(zeta_.data() + i * zp) > 8 * kEpsilon) right_.push();
    }
    right_size_ = pad4(right_.size());
    full_.grow(queries_ * right_size_);
    std::fill_n(full_.data(), queries_ * right_size_, 0.0);
    for (Index i = 0; i < queries_; ++i)
      project(right_.q(0), zp, right_.size(), zeta_.data() + i * zp, full_.data() + i * right_size_);
    zeta_.swap(full_);
  }
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
  const Index d = problem_->d(), dz = problem_->dz(), dp = pad4(d), zp = pad4(dz);
  Y.setZero(left_size_, right_size_);
  const auto left = [&](const auto& M) -> Eigen::MatrixXd {
    if (!left_reduced_) return M;
    return Eigen::Map<const Eigen::MatrixXd>(left_.q(0), dp, left_.size()).topRows(d).transpose() * M;
  };
  const Eigen::MatrixXd half = left(W / scale_);
  const Index rows = half.rows();
  if (right_reduced_) {
    Y.topLeftCorner(rows, right_.size()).noalias() =
        half * Eigen::Map<const Eigen::MatrixXd>(right_.q(0), zp, right_.size()).topRows(dz);
  } else {
    Y.topLeftCorner(rows, dz) = half;
  }
}

void NuclearRows::left_out(const Eigen::MatrixXd& U, RowMatrix& K) const {
  const Index d = problem_->d();
  if (left_reduced_) {
    K.noalias() =
        Eigen::Map<const Eigen::MatrixXd>(left_.q(0), pad4(d), left_.size()).topRows(d) * U.topRows(left_.size());
  } else {
    K = U.topRows(d);
  }
}

void NuclearRows::right_out(const Eigen::MatrixXd& V, RowMatrix& Q) const {
  const Index dz = problem_->dz();
  if (right_reduced_) {
    Q.noalias() =
        Eigen::Map<const Eigen::MatrixXd>(right_.q(0), pad4(dz), right_.size()).topRows(dz) * V.topRows(right_.size());
  } else {
    Q = V.topRows(dz);
  }
}

}  // namespace attsvm::internal
