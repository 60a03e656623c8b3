#include "margin/nuclear/twin_rows.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {
namespace {

// Distance of unit vectors. Equal words of MiniLM, in single precision, give rows 1e-8 to 1e-6 apart, all others are
// more than 1e-2 apart.
constexpr double kTwin = 1e-5;

bool are_close(const double* a, const double* b, Index size) {
  double square = 0;
  for (Index j = 0; j < size; ++j) {
    square += (a[j] - b[j]) * (a[j] - b[j]);
    if (square > kTwin * kTwin) return false;
  }
  return true;
}

bool are_twins(const NuclearRows& rows, Index k, Index l) {
  return are_close(rows.delta(k), rows.delta(l), rows.left()) &&
         are_close(rows.zeta(rows.query(k)), rows.zeta(rows.query(l)), rows.right());
}

}  // namespace

void TwinRows::merge(const NuclearRows& rows, const double* value, IndexList& active, double* lambda) {
  order_.clear();
  for (const Index k : active) {
    if (!rows.equal(k)) order_.push_back(k);
  }
  std::sort(order_.begin(), order_.end(),
            [&](Index a, Index b) { return rows.rhs(a) != rows.rhs(b) ? rows.rhs(a) < rows.rhs(b) : a < b; });
  taken_.assign(static_cast<std::size_t>(rows.count()), 0);
  bool any = false;
  for (auto first = order_.begin(); first != order_.end(); ++first) {
    if (taken_[static_cast<std::size_t>(*first)] != 0) continue;
    const double most = rows.rhs(*first) + kTwin * std::abs(rows.rhs(*first));
    Index best = *first;
    double weight = lambda[best];
    twins_.assign(1, best);
    for (auto next = first + 1; next != order_.end() && rows.rhs(*next) <= most; ++next) {
      if (taken_[static_cast<std::size_t>(*next)] != 0 || !are_twins(rows, *first, *next)) continue;
      twins_.push_back(*next);
      weight += lambda[*next];
      if (value[*next] - rows.rhs(*next) < value[best] - rows.rhs(best)) best = *next;
    }
    if (twins_.size() == 1) continue;
    any = true;
    for (const Index k : twins_) {
      taken_[static_cast<std::size_t>(k)] = 1;
      lambda[k] = 0;
    }
    taken_[static_cast<std::size_t>(best)] = 0;
    lambda[best] = weight;
  }
  if (!any) return;
  left_.clear();
  for (const Index k : active) {
    if (taken_[static_cast<std::size_t>(k)] == 0) left_.push(k);
  }
  active.swap(left_);
}

}  // namespace attsvm::internal
