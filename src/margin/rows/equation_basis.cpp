#include "margin/rows/equation_basis.h"

#include <algorithm>

#include "margin/rows/difference.h"

namespace attsvm::internal {
namespace {

constexpr double kDependent = 1e-15;  // of a row's length: a smaller rest is rounding of the data

}  // namespace

bool EquationBasis::load(const MarginProblem& problem, const MarginGroup& group) {
  equation_.clear();
  for (Index k = 0; k < group.rows; ++k) {
    if (problem.equal(group.first_row + k)) equation_.push_back(k);
  }
  if (equation_.empty()) return false;
  const Index d = problem.d();
  const auto equations = static_cast<Index>(equation_.size());
  first_row_ = group.first_row;
  basis_.setZero(d, equations);
  parts_.setZero(equations, group.rows);
  rest_.resize(d, group.rows);
  rhs_.resize(static_cast<std::size_t>(group.rows));
  for (Index k = 0; k < group.rows; ++k) {
    row_difference(problem, group, group.first_row + k, rest_.col(k).data());
    rhs_[static_cast<std::size_t>(k)] = problem.rhs(group.first_row + k);
  }
  const auto reduce = [&](Index k, Index count) {
    Real& rhs = rhs_[static_cast<std::size_t>(k)];
    for (int pass = 0; pass < 2; ++pass) {  // the second removes what rounding left
      for (Index e = 0; e < count; ++e) {
        const Real part = basis_.col(e).dot(rest_.col(k));
        rest_.col(k) -= part * basis_.col(e);
        parts_(e, k) += part;
        rhs -= part * rhs_[static_cast<std::size_t>(equation_[static_cast<std::size_t>(e)])];
      }
    }
  };
  for (Index e = 0; e < equations; ++e) {
    const Index k = equation_[static_cast<std::size_t>(e)];
    const Real length = rest_.col(k).norm();
    reduce(k, e);
    const Real left = rest_.col(k).norm();
    if (left > kDependent * length) {
      rest_.col(k) /= left;
      rhs_[static_cast<std::size_t>(k)] /= left;
      parts_(e, k) = left;
    } else {
      rest_.col(k).setZero();
      rhs_[static_cast<std::size_t>(k)] = 0;
    }
    basis_.col(e) = rest_.col(k);
  }
  for (Index k = 0; k < group.rows; ++k) {
    if (problem.equal(group.first_row + k)) continue;
    const Real length = rest_.col(k).norm();
    reduce(k, equations);
    if (!(rest_.col(k).norm() > kDependent * length)) rest_.col(k).setZero();
  }
  return true;
}

void EquationBasis::row(Index k, double* delta, double& rhs) const {
  const Index at = k - first_row_;
  for (Index j = 0; j < rest_.rows(); ++j) delta[j] = static_cast<double>(rest_(j, at));
  rhs = static_cast<double>(rhs_[static_cast<std::size_t>(at)]);
}

void EquationBasis::dual_in(double* dual) const {
  std::vector<Real> sums(equation_.size(), 0);
  for (std::size_t e = 0; e < equation_.size(); ++e) {
    for (Index k = 0; k < parts_.cols(); ++k)
      sums[e] += parts_(static_cast<Index>(e), k) * static_cast<Real>(dual[first_row_ + k]);
  }
  for (std::size_t e = 0; e < equation_.size(); ++e) dual[first_row_ + equation_[e]] = static_cast<double>(sums[e]);
}

/// The row of an equation has parts in itself and in the equations before it, so this goes from the last to the first.
void EquationBasis::dual_out(double* dual) const {
  std::vector<Real> wanted(equation_.size());
  for (std::size_t e = 0; e < equation_.size(); ++e) {
    wanted[e] = dual[first_row_ + equation_[e]];
    dual[first_row_ + equation_[e]] = 0;
  }
  for (std::size_t e = equation_.size(); e-- > 0;) {
    Real sum = wanted[e];
    const auto at = static_cast<Index>(e);
    for (Index k = 0; k < parts_.cols(); ++k) sum -= parts_(at, k) * static_cast<Real>(dual[first_row_ + k]);
    const Real own = parts_(at, equation_[e]);
    dual[first_row_ + equation_[e]] = own > 0 ? static_cast<double>(sum / own) : 0;
  }
}

}  // namespace attsvm::internal
