#pragma once

#include <string>
#include <string_view>

#include "attsvm/array.h"

namespace attsvm {

/// The norms that margin problems minimise, with the training that leads to each.
enum class NormKind : std::uint8_t {
  frobenius,  ///< (Σ W_ij²)^½: training W
  nuclear,    ///< sum of singular values: training W = K Qᵀ with vanishing regularization
  entrywise,  ///< (Σ |W_ij|^P)^(1/P): mirror descent with the potential Σ |W_ij|^P
};

std::string_view name_of(NormKind kind);  ///< for messages

/// The norm of W that a margin problem minimises.
struct Norm {
  NormKind kind = NormKind::frobenius;  ///< which family it is of
  double power = 2;                     ///< P of an entrywise norm; not used by the others

  static Norm frobenius() { return {}; }                         ///< the default
  static Norm nuclear() { return {.kind = NormKind::nuclear}; }  ///< the sum of singular values
  /// InputError unless 1 < power ≤ 8.
  static Norm entrywise(double power);
  /// "fro", "nuc" or "lp:P"; InputError for anything else.
  static Norm parse(std::string_view text);
  /// The text from which parse makes the same norm.
  std::string name() const;

  /// ‖W‖ in this norm.
  double of(const RowMatrix& W) const;
  /// The dual norm of A: Frobenius norm, operator norm, or entrywise norm with power P/(P−1).
  double dual_of(const RowMatrix& A) const;

  bool operator==(const Norm&) const = default;  ///< whether both are the same norm
};

}  // namespace attsvm
