#include "report/conflict.h"

#include <algorithm>
#include <cmath>

#include "attsvm/margin.h"
#include "base/decompositions.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kListed = 200;  // most rows

/// Coordinates of λ_k δ_k ζ_kᵀ along the two directions in which these matrices are longest, (rows,2), and the share of
/// their squared lengths that lies there. The matrices are never formed: their products are (δ_k·δ_l)(ζ_k·ζ_l).
struct Arrows {
  Eigen::MatrixXd tips;
  double share = 1;
};

Arrows arrows_of(const MarginProblem& problem, const std::vector<double>& dual, std::span<const std::size_t> rows) {
  const auto count = static_cast<Index>(rows.size());
  RowMatrix deltas(count, problem.d()), zetas(count, problem.dz());
  const auto groups = problem.groups();
  for (Index k = 0; k < count; ++k) {
    const auto row = static_cast<Index>(rows[static_cast<std::size_t>(k)]);
    const auto group = std::upper_bound(groups.begin(), groups.end(), row,
                                        [](Index at, const MarginGroup& one) { return at < one.first_row; }) -
                       1;
    problem.delta(*group, row, deltas.row(k).data());
    deltas.row(k) *= dual[static_cast<std::size_t>(row)];
    zetas.row(k) = ConstVector(group->z, problem.dz()).transpose();
  }
  const Eigen::MatrixXd products =
      (deltas * deltas.transpose()).cwiseProduct(Eigen::MatrixXd(zetas * zetas.transpose()));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(products);
  Arrows arrows{.tips = Eigen::MatrixXd::Zero(count, 2)};
  double held = 0;
  for (Index j = 0; j < std::min<Index>(2, count); ++j) {
    const Index from_largest = count - 1 - j;
    const double value = std::max(0.0, solver.eigenvalues()(from_largest));
    Eigen::VectorXd direction = solver.eigenvectors().col(from_largest);
    Index heaviest = 0;
    direction.cwiseAbs().maxCoeff(&heaviest);
    if (direction(heaviest) < 0) direction = -direction;  // fixes the arbitrary sign of an eigenvector
    arrows.tips.col(j) = std::sqrt(value) * direction;
    held += value;
  }
  if (const double all = products.trace(); all > 0) arrows.share = std::min(1.0, held / all);
  return arrows;
}

}  // namespace

Json conflict_json(const MarginProblem& problem, const StoredSolution& stored) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < stored.dual.size(); ++k) {
    if (stored.dual[k] != 0) order.push_back(k);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(stored.dual[a]) > std::abs(stored.dual[b]); });
  const std::span listed = std::span(order).first(std::min(kListed, order.size()));
  const Arrows arrows = arrows_of(problem, stored.dual, listed);
  Json rows = Json::array();
  for (std::size_t k = 0; k < listed.size(); ++k) {
    const std::size_t row = listed[k];
    const auto tip = arrows.tips.row(static_cast<Index>(k));
    rows.push_back({{"row", row},
                    {"query", stored.row_query[row]},
                    {"keep", stored.row_keep[row]},
                    {"drop", stored.row_drop[row]},
                    {"equal", static_cast<bool>(stored.row_equal[row])},
                    {"weight", stored.dual[row]},
                    {"arrow", {tip(0), tip(1)}}});
  }
  const Eigen::VectorXd dual = ConstVector(stored.dual.data(), static_cast<Index>(stored.dual.size()));
  return {{"total", order.size()},
          {"share", arrows.share},
          {"rows", std::move(rows)},
          {"words", describe_conflict(problem, dual, 20)}};
}

}  // namespace attsvm::internal
