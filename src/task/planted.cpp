#include <algorithm>
#include <cmath>

#include "task/draw.h"

namespace attsvm::internal {
namespace {

/// The number of the first row of query s: each query has one row per token but the selected one.
Index first_row(const Draft& draft, Index s) { return draft.offsets[static_cast<std::size_t>(s)] - s; }

/// Places tokens of sequence s, `count` of them, so that the weighted sum of their differences δ_t = x_selected − x_t
/// is `sum` and, where `u` is given, each has δ_tᵀu = 1. Writes the weights to dual; other tokens do not change.
struct SupportTokens {
  Draft& draft;
  std::vector<double>& dual;

  void place(Index s, Index count, double total_weight, const std::vector<double>& sum, const double* u,
             double spread) {
    const Index d = draft.recipe.d, row0 = first_row(draft, s);
    const double* kept = draft.token(s, draft.select[static_cast<std::size_t>(s)]);
    const Random noise = draft.random(kShape), weights = draft.random(kWeights);
    RowMatrix delta(count, d);
    std::vector<double> weight(static_cast<std::size_t>(count));
    double weight_sum = 0;
    for (Index k = 0; k < count; ++k) {
      weight[static_cast<std::size_t>(k)] = 0.5 + weights.uniform(static_cast<std::uint64_t>(row0 + k));
      weight_sum += weight[static_cast<std::size_t>(k)];
    }
    std::vector<double> mean(static_cast<std::size_t>(d), 0.0);
    for (Index k = 0; k < count; ++k) {
      double* row = delta.row(k).data();
      noise.normals({row, static_cast<std::size_t>(d)}, static_cast<std::uint64_t>((row0 + k) * d));
      for (Index j = 0; j < d; ++j) row[j] *= spread / std::sqrt(static_cast<double>(d));
      if (u != nullptr) add(row, -plain_dot(row, u, d) / plain_dot(u, u, d), u, d);
      add(mean.data(), weight[static_cast<std::size_t>(k)] / weight_sum, row, d);
    }
    for (Index k = 0; k < count; ++k) {
      double* row = delta.row(k).data();
      add(row, -1, mean.data(), d);
      add(row, 1 / total_weight, sum.data(), d);
      double* token = draft.token(s, other(s, k));
      for (Index j = 0; j < d; ++j) token[j] = kept[j] - row[j];
      dual[static_cast<std::size_t>(row0 + k)] = total_weight * weight[static_cast<std::size_t>(k)] / weight_sum;
    }
  }

  /// The k-th token of sequence s that is not the selected one; row k of its query is about it.
  Index other(Index s, Index k) const { return k < draft.select[static_cast<std::size_t>(s)] ? k : k + 1; }
};

/// Orthonormal rows in the span of the queries: the right singular vectors of the planted W.
RowMatrix directions_in_span(const Draft& draft, Index count, Index dz) {
  const RowMatrix mix = draft.normals(kTeacherRight, count, draft.recipe.n);
  RowMatrix rows = RowMatrix::Zero(count, dz);
  for (Index k = 0; k < count; ++k) {
    for (Index i = 0; i < draft.recipe.n; ++i) add(rows.row(k).data(), mix(k, i), draft.query(i), dz);
  }
  orthonormalize(rows);
  return rows;
}

/// Queries whose second moment Σ z zᵀ is the projector on their span.
RowMatrix draw_tight_frame(const Draft& draft, Index n, Index dz) {
  RowMatrix Z = draft.normals(kQueries, std::min(n, dz), std::max(n, dz));
  orthonormalize(Z);
  return n <= dz ? Z : RowMatrix(Z.transpose());
}

}  // namespace

// W = Σ_j σ_j u_j v_jᵀ is optimal if A = Σ_i g_i z_iᵀ, g_i = Σ_t λ_it δ_it, has dual norm 1 and is aligned with W, and
// if every row with λ > 0 is tight. If the second moment of the queries is c times a projector, g_i = A z_i / c
// achieves the first, and g_iᵀ W z_i > 0 is the total weight of query i; SupportTokens achieves the second.
void draw_planted(Draft& draft) {
  const Recipe& r = draft.recipe;
  const Index n = r.n, d = r.d, dz = draft.query_size();
  const bool nuclear = r.norm == PlantedNorm::nuclear;
  double c = 1;
  if (r.pattern == QueryPattern::cross) {
    draft.queries = draw_tight_frame(draft, n, dz);
  } else {
    c = static_cast<double>(n);
  }
  draft.tokens = draft.normals(kTokens, draft.offsets.back(), d);
  for (Index t = 0; t < draft.tokens.rows(); ++t) scale_to_unit(draft.tokens.row(t).data(), d);
  draft.draw_select();

  const Index full = std::min({n, d, dz});
  const Index rank = std::min(full, r.rank == 0 ? (nuclear ? 2 : full) : r.rank);
  const Index directions = nuclear ? full : rank;
  RowMatrix U = draft.normals(kTeacherLeft, directions, d);
  orthonormalize(U);
  const RowMatrix V = directions_in_span(draft, directions, dz);
  const Random spectrum = draft.random(kSpectrum);
  std::vector<double> sigma(static_cast<std::size_t>(directions), 0.0), a(sigma);
  double squares = 0, objective = 0;
  for (Index j = 0; j < directions; ++j) {
    const double draw = spectrum.uniform(static_cast<std::uint64_t>(j));
    auto &s = sigma[static_cast<std::size_t>(j)], &slope = a[static_cast<std::size_t>(j)];
    s = j < rank ? 1 + draw : 0;
    slope = nuclear ? (j < rank ? 1 : draw / 2) : s;
    squares += s * s;
    objective += s;
  }
  if (!nuclear) {
    objective = std::sqrt(squares);
    for (double& slope : a) slope /= objective;
  }

  std::vector<double> dual(static_cast<std::size_t>(draft.offsets.back() - n), 0.0);
  SupportTokens support{draft, dual};
  for (Index i = 0; i < n; ++i) {
    std::vector<double> u(static_cast<std::size_t>(d), 0.0), g(u);
    for (Index j = 0; j < directions; ++j) {
      const double along = plain_dot(V.row(j).data(), draft.query(i), dz);
      add(u.data(), sigma[static_cast<std::size_t>(j)] * along, U.row(j).data(), d);
      add(g.data(), a[static_cast<std::size_t>(j)] * along / c, U.row(j).data(), d);
    }
    const double reach = std::sqrt(plain_dot(u.data(), u.data(), d));
    const Index others = draft.length(i) - 1;
    const auto most = static_cast<std::uint64_t>(std::max<Index>(1, std::min(others, d - 1)));
    const auto count = static_cast<Index>(1 + draft.random(kCounts).below(most, static_cast<std::uint64_t>(i)));
    support.place(i, count, plain_dot(g.data(), u.data(), d), g, u.data(), 1 / reach);
    const double* kept = draft.token(i, draft.select[static_cast<std::size_t>(i)]);
    for (Index k = count; k < others; ++k) {  // slack rows: δ with δᵀu > 1
      double* token = draft.token(i, support.other(i, k));
      const double slack =
          0.1 + 2 * draft.random(kWeights).uniform(static_cast<std::uint64_t>(first_row(draft, i) + k));
      for (Index j = 0; j < d; ++j) token[j] /= reach;
      add(token, -(plain_dot(token, u.data(), d) + 1 + slack) / (reach * reach), u.data(), d);
      add(token, 1, kept, d);
    }
  }
  RowMatrix W = RowMatrix::Zero(d, dz);
  for (Index j = 0; j < directions; ++j) {
    for (Index row = 0; row < d; ++row)
      add(W.row(row).data(), sigma[static_cast<std::size_t>(j)] * U(j, row), V.row(j).data(), dz);
  }
  const auto rows = static_cast<Index>(dual.size());
  draft.extras = {{"x_planted_W", Array::own(W)},
                  {"x_planted_dual", Array::own(std::move(dual), {rows})},
                  {"x_planted_objective", Array::number(objective)}};
}

// A few queries z_i have Σ c_i z_i = 0, and the weighted rows of each add up to c_i g. Together they cancel,
// Σ λ δ zᵀ = g (Σ c_i z_i)ᵀ = 0, while the rows of one query alone can be met. A single query must cancel by itself
// (g = 0).
void draw_infeasible(Draft& draft) {
  const Recipe& r = draft.recipe;
  const Index d = r.d, dz = draft.query_size(), members = std::min<Index>(r.n, dz == 1 ? 2 : 3);
  draft.draw_select();
  std::vector<double> g(static_cast<std::size_t>(d), 0.0);
  std::vector<double> c(static_cast<std::size_t>(members), 1.0);
  if (members > 1) {
    draft.random(kTeacherLeft).normals(g);
    scale_to_unit(g.data(), d);
    const auto last = static_cast<std::size_t>(members - 1);
    if (r.pattern == QueryPattern::cross) {
      double* z = draft.queries.row(members - 1).data();
      std::fill(z, z + dz, 0.0);
      for (Index i = 0; i + 1 < members; ++i) add(z, -1, draft.query(i), dz);
      c[last] = std::sqrt(plain_dot(z, z, dz));
      for (Index j = 0; j < dz; ++j) z[j] /= c[last];
    } else {
      c[last] = -static_cast<double>(members - 1);
    }
  }
  std::vector<double> dual(static_cast<std::size_t>(draft.offsets.back() - r.n), 0.0);
  SupportTokens support{draft, dual};
  for (Index i = 0; i < members; ++i) {
    std::vector<double> sum = g;
    for (double& entry : sum) entry *= c[static_cast<std::size_t>(i)];
    const Index count = std::min<Index>(draft.length(i) - 1, 3);
    support.place(i, count, 1.0 / static_cast<double>(members), sum, nullptr, 1);
  }
  const auto rows = static_cast<Index>(dual.size());
  draft.extras = {{"x_certificate", Array::own(std::move(dual), {rows})}};
}

}  // namespace attsvm::internal
