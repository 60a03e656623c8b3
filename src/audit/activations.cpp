#include "audit/activations.h"

#include <algorithm>
#include <cmath>

#include "base/decompositions.h"
#include "base/random.h"
#include "theory/sign_flips.h"

namespace attsvm::internal {
namespace {

constexpr double kNegligible = 1e-7;  // scales below this share of the largest are rounding: directions without data

/// Eigenvectors of a second moment, and the roots of its eigenvalues, largest first.
void split(const Eigen::MatrixXd& moment, Eigen::MatrixXd& axes, Eigen::VectorXd& scales) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(moment);
  axes = eigen.eigenvectors().rowwise().reverse();
  scales = eigen.eigenvalues().reverse().cwiseMax(0).cwiseSqrt();
}

}  // namespace

Activations activations_of(const HeadView& view, const std::vector<Choice>& choices) {
  const HeadSet& heads = view.heads();
  const Index d = heads.size();
  Eigen::MatrixXd keys = Eigen::MatrixXd::Zero(d, d), queries = keys;
  std::vector<bool> done(static_cast<std::size_t>(heads.sequences()), false);
  for (const Choice& choice : choices) {
    const auto z = view.queries().row(choice.query);
    queries += z.transpose() * z;
    const Index sequence = heads.sequence(choice.query), begin = heads.offset(sequence);
    if (done[static_cast<std::size_t>(sequence)]) continue;
    done[static_cast<std::size_t>(sequence)] = true;
    std::vector<Index> rows;
    for (Index t = begin; t < heads.offset(sequence + 1); ++t) {
      if (!(view.hidden() && heads.sink(t))) rows.push_back(t);
    }
    RowMatrix block = view.keys()(rows, Eigen::all);
    block.rowwise() -= block.colwise().mean().eval();
    keys += block.transpose() * block;
  }
  Activations activations;
  split(keys, activations.key_axes, activations.key_scales);
  split(queries, activations.query_axes, activations.query_scales);
  return activations;
}

RankCurve rank_curve(const HeadView& view, const Activations& activations, const std::vector<Choice>& choices) {
  const auto& [key_axes, query_axes, key_scales, query_scales] = activations;
  // C_x^½ C_z^½ = U Σ Vᵀ. Its truncation to rank r, unweighted again, is C_x^−½ U_r U_rᵀ C_x^½: keys enter through
  // Uᵀ C_x^−½ k, queries through Uᵀ C_x^½ z.
  const Eigen::MatrixXd root = key_axes * key_scales.asDiagonal() * key_axes.transpose();
  const Eigen::VectorXd inverse =
      (key_scales.array() > kNegligible * key_scales(0)).select(key_scales.array().inverse(), 0.0).matrix();
  const ThinSvd svd = thin_svd(root * (query_axes * query_scales.asDiagonal() * query_axes.transpose()));
  const Eigen::MatrixXd to_key = svd.U.transpose() * key_axes * inverse.asDiagonal() * key_axes.transpose();
  const Eigen::MatrixXd to_query = svd.U.transpose() * root;
  const Index d = view.heads().size();
  RankCurve curve;
  curve.singular_values.assign(svd.sigma.begin(), svd.sigma.end());
  if (choices.empty()) return curve;
  const RowMatrix features = view.keys() * to_key.transpose();
  std::vector<Index> kept(static_cast<std::size_t>(d), 0);
  for (const Choice& choice : choices) {
    const Eigen::VectorXd z = to_query * view.queries().row(choice.query).transpose();
    const Index begin = view.heads().offset(view.heads().sequence(choice.query));
    const std::vector<Index> tokens = view.distinct(choice.query, view.shown(choice.query), choice.first);
    std::vector<double> logits(tokens.size(), 0.0);
    for (Index r = 0; r < d; ++r) {
      for (std::size_t k = 0; k < tokens.size(); ++k) logits[k] += features(begin + tokens[k], r) * z(r);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      if (tokens[static_cast<std::size_t>(best)] == choice.first) ++kept[static_cast<std::size_t>(r)];
    }
  }
  for (const Index hits : kept)
    curve.agreement.push_back(static_cast<double>(hits) / static_cast<double>(choices.size()));
  return curve;
}

Index rank_for(const std::vector<double>& agreement, double share) {
  auto rank = static_cast<Index>(agreement.size());
  while (rank > 1 && agreement[static_cast<std::size_t>(rank) - 2] >= share) --rank;
  return rank;
}

RowMatrix null_head(const Activations& activations, std::uint64_t seed, std::uint32_t instance, std::uint32_t draw) {
  const Eigen::MatrixXd inner = activations.key_axes.transpose() * activations.query_axes;
  return sign_flipped(activations.key_axes, inner, activations.query_axes, Random(seed, instance, draw));
}

}  // namespace attsvm::internal
