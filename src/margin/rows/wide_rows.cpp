#include "margin/rows/wide_rows.h"

#include <algorithm>
#include <limits>

#include "margin/rows/difference.h"

namespace attsvm::internal {
namespace {

constexpr Index kMostWideRows = 1500;           // by hand
constexpr Index kMostWideProducts = 2'000'000;  // multiplications per pass over all rows: 0.1 s

/// Scales the numbers so that the largest has exponent 0 and returns its exponent before; `none` if all are zero.
slong normalize(Wide* numbers, Index count, slong none) {
  slong largest = none;
  for (Index j = 0; j < count; ++j) {
    if (!numbers[j].is_zero()) largest = std::max(largest, numbers[j].exponent());
  }
  for (Index j = 0; j < count && largest != none; ++j) numbers[j] = numbers[j].shifted(-largest);
  return largest;
}

}  // namespace

WideVector solve_lower(const std::vector<WideVector>& L, const WideVector& b) {
  WideVector x(b.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!L[k][k].is_zero()) x[k] = (b[k] - dot(L[k].data(), x.data(), static_cast<Index>(k))) / L[k][k];
  }
  return x;
}

WideVector solve_transposed(const std::vector<WideVector>& L, WideVector b) {
  for (std::size_t k = b.size(); k-- > 0;) {
    if (L[k][k].is_zero()) continue;
    b[k] /= L[k][k];
    for (std::size_t l = 0; l < k; ++l) b[l] -= L[k][l] * b[k];
  }
  return b;
}

bool WideRows::suit(const MarginProblem& problem) {
  const Index groups = static_cast<Index>(problem.groups().size());
  return problem.rows() <= kMostWideRows && problem.d() * (problem.rows() + groups * problem.dz()) <= kMostWideProducts;
}

void WideRows::load(const MarginProblem& problem) {
  constexpr slong kNone = std::numeric_limits<slong>::min();
  d_ = problem.d();
  dz_ = problem.dz();
  row_.clear();
  group_.clear();
  exponent_.clear();
  delta_.resize(at(problem.rows() * d_));
  zeta_.resize(problem.groups().size() * at(dz_));
  Index kept = 0;
  for (std::size_t i = 0; i < problem.groups().size(); ++i) {
    const MarginGroup& group = problem.groups()[i];
    Wide* zeta = zeta_.data() + static_cast<Index>(i) * dz_;
    for (Index j = 0; j < dz_; ++j) zeta[j] = group.z[j];
    const slong zeta_exponent = normalize(zeta, dz_, kNone);
    if (zeta_exponent == kNone) continue;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      Wide* delta = delta_.data() + kept * d_;
      row_difference(problem, group, k, delta);
      const slong delta_exponent = normalize(delta, d_, kNone);
      if (delta_exponent == kNone) continue;
      row_.push_back(k);
      group_.push_back(static_cast<Index>(i));
      exponent_.push_back(delta_exponent + zeta_exponent);
      ++kept;
    }
  }
}

void WideRows::weigh(const WideVector& lambda, WideVector& W) const {
  W.assign(at(d_ * dz_), Wide());
  WideVector sum(at(d_));
  for (Index k = 0; k < count();) {
    const Index i = group(k);
    bool any = false;
    for (; k < count() && group(k) == i; ++k) {
      if (lambda[at(k)].is_zero()) continue;
      if (!any) std::fill(sum.begin(), sum.end(), Wide());
      any = true;
      for (Index a = 0; a < d_; ++a) sum[at(a)].add_product(lambda[at(k)], delta(k)[a]);
    }
    for (Index a = 0; any && a < d_; ++a) {
      for (Index b = 0; b < dz_; ++b) W[at(a * dz_ + b)].add_product(sum[at(a)], zeta(i)[b]);
    }
  }
}

void WideRows::values(const WideVector& W, WideVector& out) const {
  out.resize(at(count()));
  WideVector u(at(d_));
  for (Index k = 0; k < count();) {
    const Index i = group(k);
    for (Index a = 0; a < d_; ++a) u[at(a)] = dot(W.data() + a * dz_, zeta(i), dz_);
    for (; k < count() && group(k) == i; ++k) out[at(k)] = dot(delta(k), u.data(), d_);
  }
}

Wide WideRows::inner(Index k, Index l) const {
  return dot(delta(k), delta(l), d_) * dot(zeta(group(k)), zeta(group(l)), dz_);
}

}  // namespace attsvm::internal
