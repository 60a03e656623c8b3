#pragma once

#include "audit/head_view.h"

namespace attsvm::internal {

/// Eigenvectors and square roots of eigenvalues of the second moments of what a head reads: of keys about the mean of
/// their sequence, because only differences of keys matter, and of queries about zero.
struct Activations {
  Eigen::MatrixXd key_axes, query_axes;      ///< (d,d), one eigenvector per column
  Eigen::VectorXd key_scales, query_scales;  ///< (d)
};

Activations activations_of(const HeadView& view, const std::vector<Choice>& choices);

/// How much of a head survives when it is truncated where the activations say it matters least.
struct RankCurve {
  std::vector<double> singular_values;  ///< of C_x^½ C_z^½, C the second moments
  std::vector<double> agreement;        ///< share of `choices` that the head of rank 1, 2, …, d keeps
};

RankCurve rank_curve(const HeadView& view, const Activations& activations, const std::vector<Choice>& choices);

/// The least rank whose agreement, and that of all higher ranks, is at least `share`; 0 if there is no agreement.
Index rank_for(const std::vector<double>& agreement, double share);

/// E_x S (E_xᵀ E_z) T E_zᵀ with random signs S and T: as large as the head, in the same directions, at random.
RowMatrix null_head(const Activations& activations, std::uint64_t seed, std::uint32_t instance, std::uint32_t draw);

}  // namespace attsvm::internal
