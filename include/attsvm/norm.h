#pragma once

#include <string>
#include <string_view>

#include "attsvm/array.h"

namespace attsvm {

enum class NormKind : std::uint8_t {
  frobenius,  ///< what training W finds
  nuclear,    ///< sum of singular values: what (K,Q) tend to with vanishing regularization
  entrywise,  ///< (Σ |W_ij|^P)^(1/P): what mirror descent with that potential finds
};

/// The norm of W that a margin problem minimises.
struct Norm {
  NormKind kind = NormKind::frobenius;
  double power = 2;  ///< P of an entrywise norm; of no meaning for the others

  static Norm frobenius() { return {}; }
  static Norm nuclear() { return {.kind = NormKind::nuclear}; }
  /// InputError unless 1 < power ≤ 8.
  static Norm entrywise(double power);
  /// "fro", "nuc" or "lp:P"; InputError for anything else.
  static Norm parse(std::string_view text);
  /// The text that parse reads back exactly.
  std::string name() const;

  double of(const RowMatrix& W) const;
  /// The dual norm: Frobenius, operator norm, or entrywise with power P/(P−1).
  double dual_of(const RowMatrix& A) const;

  bool operator==(const Norm&) const = default;
};

}  // namespace attsvm
