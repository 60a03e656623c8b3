#include "linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace attsvm::test {
namespace {

using Column = std::vector<long double>;
using Columns = std::vector<Column>;

Columns columns_of(const Eigen::MatrixXd& A) {
  Columns columns;
  for (Index j = 0; j < A.cols(); ++j) columns.emplace_back(A.data() + j * A.rows(), A.data() + (j + 1) * A.rows());
  return columns;
}

long double dot(const Column& x, const Column& y) { return std::inner_product(x.begin(), x.end(), y.begin(), 0.0L); }

void rotate(Column& x, Column& y, long double c, long double s) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/// One-sided Jacobi: rotates columns, and those of V alike, until all are orthogonal.
void orthogonalize(Columns& columns, Columns& V) {
  bool done = false;
  for (int sweep = 0; !done && sweep < 100; ++sweep) {
    done = true;
    for (std::size_t q = 1; q < columns.size(); ++q) {
      for (std::size_t p = 0; p < q; ++p) {
        const long double a = dot(columns[p], columns[p]), b = dot(columns[q], columns[q]),
                          c = dot(columns[p], columns[q]);
        if (std::abs(c) <= 1e-18L * std::sqrt(a * b)) continue;
        done = false;
        const long double zeta = (b - a) / (2 * c);
        const long double t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::hypot(1.0L, zeta));
        const long double cosine = 1 / std::hypot(1.0L, t);
        rotate(columns[p], columns[q], cosine, cosine * t);
        rotate(V[p], V[q], cosine, cosine * t);
      }
    }
  }
}

}  // namespace

Svd svd_of(const Eigen::MatrixXd& A) {
  if (A.rows() < A.cols()) {
    Svd other = svd_of(A.transpose());
    std::swap(other.U, other.V);
    return other;
  }
  const Index n = A.cols();
  Columns columns = columns_of(A), V = columns_of(Eigen::MatrixXd::Identity(n, n));
  orthogonalize(columns, V);
  std::vector<long double> sigma;
  for (const Column& column : columns) sigma.push_back(std::sqrt(dot(column, column)));
  std::vector<std::size_t> order(sigma.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sigma[a] > sigma[b]; });
  Svd svd{Eigen::MatrixXd::Zero(A.rows(), n), Eigen::MatrixXd(n, n), Eigen::VectorXd(n)};
  for (Index k = 0; k < n; ++k) {
    const std::size_t from = order[static_cast<std::size_t>(k)];
    svd.sigma(k) = static_cast<double>(sigma[from]);
    for (Index i = 0; i < A.rows() && sigma[from] > 0; ++i)
      svd.U(i, k) = static_cast<double>(columns[from][static_cast<std::size_t>(i)] / sigma[from]);
    for (Index i = 0; i < n; ++i) svd.V(i, k) = static_cast<double>(V[from][static_cast<std::size_t>(i)]);
  }
  return svd;
}

Index rank_of(const Eigen::MatrixXd& A, double share) {
  const Eigen::VectorXd sigma = svd_of(A).sigma;
  return std::count_if(sigma.begin(), sigma.end(), [&](double s) { return s > share * sigma(0); });
}

Eigen::MatrixXd orthonormal(const Eigen::MatrixXd& A) {
  Columns columns = columns_of(A);
  Eigen::MatrixXd Q(A.rows(), A.cols());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (int pass = 0; pass < 2; ++pass) {  // the second removes what rounding left
      for (std::size_t k = 0; k < j; ++k) {
        const long double share = dot(columns[k], columns[j]);
        for (std::size_t i = 0; i < columns[j].size(); ++i) columns[j][i] -= share * columns[k][i];
      }
    }
    const long double length = std::sqrt(dot(columns[j], columns[j]));
    for (long double& x : columns[j]) x /= length;
    std::transform(columns[j].begin(), columns[j].end(), Q.data() + static_cast<Index>(j) * Q.rows(),
                   [](long double x) { return static_cast<double>(x); });
  }
  return Q;
}

RowMatrix gaussian(Index rows, Index cols, std::mt19937_64& engine) {
  std::normal_distribution<double> normal;
  RowMatrix result(rows, cols);
  for (Index i = 0; i < rows * cols; ++i) result.data()[i] = normal(engine);
  return result;
}

RowMatrix orthogonal(Index n, std::mt19937_64& engine) { return orthonormal(gaussian(n, n, engine)); }

}  // namespace attsvm::test
