#pragma once

#include <string>
#include <string_view>

#include "attsvm/array.h"

namespace attsvm {

/// What a norm of W is a power norm of.
enum class NormFamily : std::uint8_t {
  entrywise,  ///< the entries: lp:P
  schatten,   ///< the singular values: schatten:P
};

/// A norm of W that a margin problem minimises: (Σ |x|^P)^(1/P) over the entries or the singular values x of W, or
/// their largest absolute value if P is infinite. Norms that are equal compare equal: both families share P = 2.
struct Norm {
  NormFamily family = NormFamily::entrywise;  ///< what it measures
  double power = 2;                           ///< P, from 1 to infinity

  /// (Σ W_ij²)^½, for which gradient descent on W maximises the margin.
  static Norm frobenius() { return {}; }
  /// The sum of singular values: training W = K Qᵀ with vanishing regularization.
  static Norm nuclear() { return schatten(1); }
  static Norm spectral();  ///< the largest singular value: spectral descent, Muon
  static Norm largest();   ///< the largest absolute entry: sign descent, Adam without ε
  static Norm l1();        ///< the sum of absolute entries: coordinate descent
  /// InputError unless 1 ≤ power ≤ ∞.
  static Norm entrywise(double power);
  /// InputError unless 1 ≤ power ≤ ∞.
  static Norm schatten(double power);
  /// "fro", "nuc", "spec", "max", "l1", "lp:P" or "schatten:P" with P from 1 to "inf"; InputError for anything else.
  static Norm parse(std::string_view text);
  /// The shortest text from which parse makes the same norm.
  std::string name() const;

  bool is_frobenius() const { return power == 2; }                                  ///< is it fro?
  bool is_nuclear() const { return family == NormFamily::schatten && power == 1; }  ///< is it nuc?
  bool is_entrywise() const { return family == NormFamily::entrywise; }             ///< is it fro, max, l1 or lp:P?
  bool is_strictly_convex() const;  ///< 1 < P < ∞, so that margin problems have one answer

  /// The norm whose unit ball is polar to that of this one: the same family with power P/(P−1).
  Norm dual() const;
  /// ‖W‖ in this norm.
  double of(const RowMatrix& W) const;
  /// The dual norm of A.
  double dual_of(const RowMatrix& A) const { return dual().of(A); }

  bool operator==(const Norm&) const = default;  ///< whether both are the same norm
};

}  // namespace attsvm
