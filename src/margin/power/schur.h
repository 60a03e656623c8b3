#pragma once

#include "margin/power/frame.h"
#include "margin/power/rows.h"

namespace attsvm::internal {

/// Newton's equations for the multipliers of rows: R F Rᵀ + D, with F ≥ 0 diagonal in the coordinates of a frame, D ≥ 0
/// diagonal, and a little more on the diagonal for rows that depend on each other. Keeps its memory between calls.
template <class Real>
class PowerSchur {
 public:
  using Vector = PowerVector<Real>;

  /// Computes the matrix and factors it. `picked`: the rows it is for, ascending; null: all. D has one number per such
  /// row. False: not positive definite.
  bool form(const PowerRows<Real>& rows, const Frame<Real>& frame, const Vector& F, const Vector& D,
            const IndexList* picked = nullptr);
  /// Replaces x by the solution for the right-hand side x.
  void solve(Vector& x) const;

 private:
  void split(const Frame<Real>& frame, const Vector& F);
  bool factor();

  Real& at(Index k, Index l) { return G_.data()[l * ld_ + k]; }

  Index count_ = 0, ld_ = 0;
  bool with_blas_ = false;
  OuterRows<Real> picked_, rotated_;
  Vector straight_, scratch_;
  PowerColumns<Real> crossed_, G_;  // the matrix is at the beginning of G, with leading size ld_
};

extern template class PowerSchur<double>;
extern template class PowerSchur<long double>;

}  // namespace attsvm::internal
