#pragma once

#include "attsvm/norm.h"

namespace attsvm::internal {

/// Singular values at most this share of the largest count as zero: rounding of the gradient's entries leaves nothing
/// of their directions.
constexpr double kRankTolerance = 1e-12;

/// ‖·‖_F without overflow or underflow of squares.
double safe_norm(const RowMatrix& matrix);

/// The steepest direction of a norm N at g ≠ 0: D with N(D) = 1 and ⟨g,D⟩ = N*(g), the dual norm. Entries and singular
/// values that tie count in their order.
class SteepestDirection {
 public:
  explicit SteepestDirection(const Norm& norm) : norm_(norm) {}

  /// The direction is along()/divisor(); with ε, it is D·N*(g)/(N*(g) + ε). `g` must outlive the result.
  void compute(const RowMatrix& g, double epsilon);
  const RowMatrix& along() const { return *along_; }
  double divisor() const { return divisor_; }

 private:
  double powers(Eigen::Ref<Eigen::VectorXd> sizes);
  double entries(const RowMatrix& g);
  double singular_values(const RowMatrix& g);

  Norm norm_;
  RowMatrix direction_;
  const RowMatrix* along_ = nullptr;
  double divisor_ = 1;
};

/// Approximates U Vᵀ of g = U Σ Vᵀ by iterations of X ← 3.4445 X − 4.775 XXᵀX + 2.0315 (XXᵀ)²X from g/(‖g‖_F + ε).
/// Singular values that are not tiny end between about 0.7 and 1.2.
void newton_schulz(const RowMatrix& g, double epsilon, Index iterations, RowMatrix& out);

}  // namespace attsvm::internal
