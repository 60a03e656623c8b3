#pragma once

#include <vector>

#include "attsvm/margin.h"
#include "attsvm/threads.h"
#include "margin/rows/row_sums.h"
#include "margin/rows/wide_rows.h"

namespace attsvm::internal {

/// ‖M‖_F without overflow or underflow of squares.
template <class Matrix>
double norm_of(const Matrix& M) {
  const double norm = M.norm();
  return norm > 1e-140 && norm < 1e140 ? norm : M.stableNorm();
}

/// One pass over the rows computes the values δ_kᵀ W ζ_k and A = Σ dual_k δ_k ζ_kᵀ, in arithmetic precise enough for
/// the cancellation in A. Keeps its memory between calls.
class RowMeasure {
 public:
  enum class Arithmetic : std::uint8_t { fast, extended, wide };  ///< double, long double, 512 bits

  explicit RowMeasure(Threads& threads) : threads_(threads) {}

  /// The next passes use at least this arithmetic; a pass that needs more raises it for those after it.
  void start(Arithmetic least) { arithmetic_ = least; }
  /// If ‖A‖ is at most `enough`, error included, no higher precision is used for it. `sums` are those of the problem;
  /// NeedsAllRows where processes share it and double is not precise enough.
  void take(const MarginProblem& problem, const RowSums& sums, const RowMatrix& W, const Eigen::VectorXd& dual,
            double enough = 0);

  Arithmetic arithmetic() const { return arithmetic_; }
  const Eigen::VectorXd& values() const { return values_; }
  void stretch(double factor) { values_ *= factor; }  ///< multiplies the values by `factor`, as for a scaled W
  const RowMatrix& A() const { return A_; }           ///< (d, at least dz), zeros beyond dz
  double norm() const { return norm_; }               ///< ‖A‖_F
  double size() const { return size_; }    ///< Σ |dual_k| ‖δ_k‖ ‖ζ_k‖: ‖A‖ if no terms cancelled
  double error() const;                    ///< how far rounding may have moved ‖A‖
  double reach() const { return reach_; }  ///< the largest ‖δ_k‖ ‖W‖ ‖ζ_k‖
  double value_error() const;              ///< how far rounding has moved values, as a rule

 private:
  using Real = long double;

  void take_fast(const MarginProblem& problem, const RowSums& sums, const RowMatrix& W, const Eigen::VectorXd& dual);
  void take_extended(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual);
  void take_wide(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual);
  bool suffices(const MarginProblem& problem, double enough) const;

  /// What one thread gathers over its share of the groups.
  struct Share {
    Eigen::VectorXd u;
    RowMatrix g, z;  // Σ dual_k δ_k and ζ of queries not yet added to A, zero-padded to multiples of 4
    RowMatrix A;     // (d, padded dz)
    double size = 0, reach = 0;
  };
  void gather(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual, std::size_t begin,
              std::size_t end, Share& share);

  Threads& threads_;
  Arithmetic arithmetic_ = Arithmetic::fast;
  Index terms_ = 0;  // number of terms in an entry of A
  double norm_ = 0, size_ = 0;
  double reach_ = 0;                  // largest ‖δ_k‖ ‖ζ_k‖ ‖W‖
  Eigen::VectorXd values_, squares_;  // squares_: ‖δ‖² as the fast pass sees it
  std::vector<Share> shares_;
  RowMatrix A_;
  Eigen::Matrix<Real, Eigen::Dynamic, 1> wide_u_, wide_g_, wide_delta_;
  Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic> wide_A_;
  WideRows rows_;
};

}  // namespace attsvm::internal
