// The two arithmetics that enclose the numbers by which a claim is judged.
#pragma once

#include <functional>
#include <memory>

#include "verify/norms.h"
#include "verify/rows.h"

namespace attsvm::internal::proof {

/// Encloses the numbers of one claim about one question.
class Arithmetic {
 public:
  virtual ~Arithmetic() = default;

  /// As in Verification::arithmetic: "ball, 128 bits".
  virtual std::string name() const = 0;

  /// Calls visit(k, δ_kᵀ W ζ_k) for every row, in order.
  virtual void read_rows(const std::function<void(std::size_t, const Ball&)>& visit) = 0;
  virtual Ball norm_of_W() = 0;       ///< in the norm of the claim
  virtual Ball frobenius_of_W() = 0;  ///< ‖W‖_F
  virtual Ball dual_norm_of_A() = 0;  ///< of A(dual) = Σ dual_k δ_k ζ_kᵀ, in the dual norm
  virtual Ball frobenius_of_A() = 0;  ///< ‖A(dual)‖_F
  virtual Ball product_defect() = 0;  ///< at least max |(K Qᵀ − W)_ab|
  virtual Ball balance_defect() = 0;  ///< at least max |(KᵀK − QᵀQ)_ij|
  virtual SpectralProof spectrum_of_W() = 0;
};

/// In balls of the thread's working precision: precise, about 10 ns per multiplication.
std::unique_ptr<Arithmetic> ball_arithmetic(const Question& question, const StoredSolution& claim, const Norm& norm);

/// What the rows of one query add to A(dual): g ζᵀ.
struct Contribution {
  std::vector<long double> g;
  std::vector<double> zeta;
  long double sizes;  ///< Σ |dual_k| ‖δ_k‖, not 0
  Index terms;        ///< rows with a multiplier
};

/// That of a group of rows; nothing if all its multipliers are 0, or do not count.
bool contribute(const Question& question, const StoredSolution& claim, const Group& group, Contribution& out);

/// Calls its argument for all contributions, in the order of queries.
using Contributions = std::function<void(const std::function<void(const Contribution&)>&)>;

/// In doubles and long doubles, each sum with a bound on its rounding error: as fast as the processor. A number whose
/// products leave the range of doubles gets an infinite enclosure.
/// `contributions` are those of all queries, where others than those of the question count; null: those of the
/// question.
std::unique_ptr<Arithmetic> bounded_arithmetic(const Question& question, const StoredSolution& claim, const Norm& norm,
                                               Contributions contributions = nullptr);

}  // namespace attsvm::internal::proof
