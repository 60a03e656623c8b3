#include "task/draw.h"

#include <cmath>

namespace attsvm::internal {

double plain_dot(const double* a, const double* b, Index size) {
  double sum = 0;
  for (Index i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

void add(double* a, double factor, const double* b, Index size) {
  for (Index i = 0; i < size; ++i) a[i] += factor * b[i];
}

void scale_to_unit(double* a, Index size) {
  const double norm = std::sqrt(plain_dot(a, a, size));
  for (Index i = 0; i < size; ++i) a[i] /= norm;
}

void orthonormalize(RowMatrix& rows) {
  for (Index i = 0; i < rows.rows(); ++i) {
    double* row = rows.row(i).data();
    for (int pass = 0; pass < 2; ++pass) {
      for (Index j = 0; j < i; ++j)
        add(row, -plain_dot(row, rows.row(j).data(), rows.cols()), rows.row(j).data(), rows.cols());
      scale_to_unit(row, rows.cols());
    }
  }
}

RowMatrix Draft::normals(Stream stream, Index rows, Index cols) const {
  RowMatrix matrix(rows, cols);
  random(stream).normals({matrix.data(), static_cast<std::size_t>(matrix.size())});
  return matrix;
}

const double* Draft::query(Index s) const {
  static constexpr double kOne = 1;
  return recipe.pattern == QueryPattern::cross ? queries.row(s).data() : &kOne;
}

void Draft::draw_select() {
  for (Index s = 0; s < recipe.n; ++s) {
    const auto length_s = static_cast<std::uint64_t>(length(s));
    select.push_back(static_cast<Index>(random(kSelect).below(length_s, static_cast<std::uint64_t>(s))));
  }
}

}  // namespace attsvm::internal
