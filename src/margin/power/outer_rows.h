#pragma once

#include "margin/rows/unit_rows.h"

namespace attsvm::internal {

template <class Real>
using PowerVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
template <class Real>
using PowerMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;  ///< one vector per row
template <class Real>
using PowerColumns = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;

/// Rows uₖvₖᵀ, or vₖuₖᵀ if `turned`, as vectors of row-major matrices, with one u per row and one v per query: what
/// they give for a matrix, their weighted sum, and their Gram matrix. Never stores the rows themselves. Keeps its
/// memory between calls; calls on one object must not overlap.
template <class Real>
class OuterRows {
 public:
  using Vector = PowerVector<Real>;

  /// Rows of a query must be consecutive. `query` must stay valid.
  void load(const PowerMatrix<Real>& u, const PowerMatrix<Real>& v, const Index* query, bool turned);
  /// The rows UᵀRV of rows R, if P and S are U and V, or V and U if they are turned.
  void rotate(const OuterRows& rows, const PowerMatrix<Real>& P, const PowerMatrix<Real>& S);
  /// Some of the rows of another object, `picked` ascending.
  void take(const OuterRows& rows, const IndexList& picked);
  /// x_k = ⟨row k, W⟩
  void values(const Vector& W, Vector& x) const;
  /// W = Σ x_k row k
  void weigh(const Vector& x, Vector& W) const;
  /// Lower triangle of G(k,l) = Σ_ij F_ij M_ij N_ij + Σ_ij C_ij M_ij N_ji for row k = M and row l = N. C belongs to the
  /// leading square part of the rows and is symmetric; null: none. G gets pad4(rows + 4) rows.
  void gram(const Vector& F, const PowerColumns<Real>* C, PowerColumns<Real>& G) const;

 private:
  PowerMatrix<Real> u_, v_;
  const Index* query_ = nullptr;
  Buffer<Index> picked_query_;
  bool turned_ = false;
};

/// The same by kernels that use vector instructions.
template <>
class OuterRows<double> {
 public:
  using Vector = PowerVector<double>;

  void load(const PowerMatrix<double>& u, const PowerMatrix<double>& v, const Index* query, bool turned);
  void rotate(const OuterRows& rows, const PowerMatrix<double>& P, const PowerMatrix<double>& S);
  void take(const OuterRows& rows, const IndexList& picked);
  void values(const Vector& W, Vector& x) const;
  void weigh(const Vector& x, Vector& W) const;
  void gram(const Vector& F, const PowerColumns<double>* C, PowerColumns<double>& G) const;

 private:
  void lay_out(const Vector& W) const;
  void shape(Index count, Index queries, Index d, Index dz, const Index* query, bool turned);
  void group();

  Index count_ = 0, queries_ = 0;
  const Index* query_ = nullptr;
  Buffer<Index> picked_query_;
  bool turned_ = false;
  UnitRows rows_;
  Buffer<double> axes_;
  mutable Buffer<double> W_, corner_, work_;
};

}  // namespace attsvm::internal
