#include "margin/streaming/face_blocks.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {
namespace {

constexpr double kLiftedPivot = 1e-6;  // relative to the diagonal; blocks have single precision
constexpr double kRidge = 1e-5;        // on the diagonal of blocks whose rows depend on each other, also relative

/// Lower Cholesky factor of K on the members, with the diagonal of K times 1 + ridge. Stores the inverse of the
/// factor's diagonal. False: a pivot was lifted; the factor is useless if several were.
bool factor_block(const double* K, Index size, const std::vector<Index>& member, double ridge, double* factor) {
  const auto n = static_cast<Index>(member.size());
  bool good = true;
  for (Index e = 0; e < n; ++e) {
    const double* K_row = K + member[static_cast<std::size_t>(e)] * size;
    double* row = factor + e * n;
    for (Index c = 0; c < e; ++c) {
      const double* other = factor + c * n;
      double sum = K_row[member[static_cast<std::size_t>(c)]];
      for (Index h = 0; h < c; ++h) sum -= row[h] * other[h];
      row[c] = sum * other[c];
    }
    const double diagonal = K_row[member[static_cast<std::size_t>(e)]];
    double pivot = diagonal * (1 + ridge);
    for (Index h = 0; h < e; ++h) pivot -= row[h] * row[h];
    good = good && pivot >= kLiftedPivot * diagonal;
    row[e] = 1 / std::sqrt(std::max(pivot, kLiftedPivot * diagonal));
  }
  return good;
}

/// Computes the columns of the inverse of that factor.
void invert_factor(const double* factor, Index n, double* columns) {
  for (Index c = 0; c < n; ++c) {
    double* column = columns + c * n;
    for (Index e = c; e < n; ++e) {
      double sum = e == c ? 1 : 0;
      for (Index h = c; h < e; ++h) sum -= factor[e * n + h] * column[h];
      column[e] = sum * factor[e * n + e];
    }
  }
}

}  // namespace

void invert_face_block(const double* K, Index size, const std::uint8_t* face, BlockScratch& scratch, double* inverse) {
  scratch.member.clear();
  for (Index e = 0; e < size; ++e) {
    if (face[e] != 0) scratch.member.push_back(e);
  }
  const auto n = static_cast<Index>(scratch.member.size());
  scratch.factor.resize(static_cast<std::size_t>(n * n));
  scratch.inverse_factor.resize(static_cast<std::size_t>(n * n));
  if (!factor_block(K, size, scratch.member, 0, scratch.factor.data()))
    factor_block(K, size, scratch.member, kRidge, scratch.factor.data());
  invert_factor(scratch.factor.data(), n, scratch.inverse_factor.data());
  std::fill_n(inverse, size * size, 0.0);
  for (Index a = 0; a < n; ++a) {
    const double* left = scratch.inverse_factor.data() + a * n;
    const Index row = scratch.member[static_cast<std::size_t>(a)];
    for (Index c = 0; c <= a; ++c) {
      const double* right = scratch.inverse_factor.data() + c * n;
      const Index column = scratch.member[static_cast<std::size_t>(c)];
      double sum = 0;
      for (Index h = a; h < n; ++h) sum += left[h] * right[h];
      inverse[row * size + column] = inverse[column * size + row] = sum;
    }
  }
}

void ascend_block(const double* K, Index size, const double* low, double tolerance, int sweeps, double* gradient,
                  double* lambda) {
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    double moved = 0;
    for (Index e = 0; e < size; ++e) {
      const double curvature = K[e * size + e];
      if (!(curvature > 0)) continue;
      const double next = std::max(low[e], lambda[e] + gradient[e] / curvature), change = next - lambda[e];
      if (change == 0) continue;
      lambda[e] = next;
      for (Index c = 0; c < size; ++c) gradient[c] -= change * K[e * size + c];
      moved = std::max(moved, std::abs(change) * curvature);
    }
    if (moved < tolerance) return;
  }
}

}  // namespace attsvm::internal
