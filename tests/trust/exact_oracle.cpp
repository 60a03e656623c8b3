#include "trust/exact_oracle.h"

#include <flint/fmpq.h>
#include <flint/fmpq_mat.h>

#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace attsvm::test {
namespace {

class Rational {
 public:
  Rational() { fmpq_init(value_); }
  Rational(double x) : Rational() {  // NOLINT: doubles are fractions
    int exponent = 0;
    const auto mantissa = static_cast<slong>(std::ldexp(std::frexp(x, &exponent), 53));
    fmpq_set_si(value_, mantissa, 1);
    shift(exponent - 53);
  }
  Rational(const Rational& other) : Rational() { fmpq_set(value_, other.value_); }
  Rational& operator=(const Rational& other) {
    if (this != &other) fmpq_set(value_, other.value_);
    return *this;
  }
  ~Rational() { fmpq_clear(value_); }

  void shift(slong exponent) {
    if (exponent >= 0) {
      fmpq_mul_2exp(value_, value_, static_cast<flint_bitcnt_t>(exponent));
    } else {
      fmpq_div_2exp(value_, value_, static_cast<flint_bitcnt_t>(-exponent));
    }
  }
  Rational& operator+=(const Rational& y) { return fmpq_add(value_, value_, y.value_), *this; }
  Rational& operator-=(const Rational& y) { return fmpq_sub(value_, value_, y.value_), *this; }
  Rational& operator*=(const Rational& y) { return fmpq_mul(value_, value_, y.value_), *this; }
  Rational& operator/=(const Rational& y) { return fmpq_div(value_, value_, y.value_), *this; }
  friend Rational operator*(Rational x, const Rational& y) { return x *= y; }
  friend Rational operator-(Rational x, const Rational& y) { return x -= y; }
  friend Rational operator/(Rational x, const Rational& y) { return x /= y; }
  friend bool operator<(const Rational& x, const Rational& y) { return fmpq_cmp(x.value_, y.value_) < 0; }
  int sign() const { return fmpq_sgn(value_); }
  const fmpq* get() const { return value_; }
  fmpq* get() { return value_; }

  /// x = mantissa · 2^exponent, rounded.
  std::pair<double, slong> scientific() const {
    slong top = 0, bottom = 0;
    const double upper = fmpz_get_d_2exp(&top, fmpq_numref(value_));
    const double lower = fmpz_get_d_2exp(&bottom, fmpq_denref(value_));
    return {upper / lower, top - bottom};
  }

 private:
  fmpq_t value_;
};

using Vector = std::vector<Rational>;

Rational dot(const Vector& x, const Vector& y) {
  Rational sum;
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (x[j].sign() != 0 && y[j].sign() != 0) sum += x[j] * y[j];
  }
  return sum;
}

double square_root(const Rational& x) {
  auto [mantissa, exponent] = x.scientific();
  if (exponent % 2 != 0) mantissa *= 2, --exponent;
  return std::ldexp(std::sqrt(mantissa), static_cast<int>(exponent / 2));
}

/// The rows g·w ≥ h, with equalities as two rows. Each has h as its last entry and is scaled by a power of two to a
/// size of about 1. Rows with g = 0 are decided here and left out.
struct Columns {
  std::vector<Vector> all;
  bool impossible = false;
  double largest_row = 0;
};

Columns columns_of(const MarginProblem& problem) {
  Columns columns;
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      Vector row;
      for (Index a = 0; a < problem.d(); ++a) {
        Rational delta = Rational(group.sign) * Rational(group.X[group.keep * problem.d() + a]);
        if (problem.drop(k) >= 0) delta -= Rational(group.X[problem.drop(k) * problem.d() + a]);
        for (Index b = 0; b < problem.dz(); ++b) row.push_back(delta * Rational(group.z[b]));
      }
      const Rational square = dot(row, row);
      if (square.sign() == 0) {
        columns.impossible = columns.impossible || problem.rhs(k) > 0 || (problem.equal(k) && problem.rhs(k) != 0);
        continue;
      }
      columns.largest_row = std::max(columns.largest_row, square_root(square));
      row.emplace_back(problem.rhs(k));
      const slong exponent = square.scientific().second / 2;
      for (Rational& entry : row) entry.shift(-exponent);
      columns.all.push_back(row);
      if (!problem.equal(k)) continue;
      for (Rational& entry : row) entry *= Rational(-1);
      columns.all.push_back(row);
    }
  }
  return columns;
}

class LeastSquares {
 public:
  explicit LeastSquares(const std::vector<Vector>& columns) : columns_(columns) {}

  /// The coefficients of the projection of the last unit vector on the columns of the set.
  Vector solve(const std::vector<std::size_t>& set) {
    const auto size = static_cast<slong>(set.size());
    fmpq_mat_t gram, right, answer;
    fmpq_mat_init(gram, size, size);
    fmpq_mat_init(right, size, 1);
    fmpq_mat_init(answer, size, 1);
    for (slong i = 0; i < size; ++i) {
      const std::size_t k = set[static_cast<std::size_t>(i)];
      fmpq_set(fmpq_mat_entry(right, i, 0), columns_[k].back().get());
      for (slong j = 0; j < size; ++j)
        fmpq_set(fmpq_mat_entry(gram, i, j), inner(k, set[static_cast<std::size_t>(j)]).get());
    }
    fmpq_mat_solve(answer, gram, right);
    Vector result(set.size());
    for (slong i = 0; i < size; ++i) fmpq_set(result[static_cast<std::size_t>(i)].get(), fmpq_mat_entry(answer, i, 0));
    fmpq_mat_clear(gram);
    fmpq_mat_clear(right);
    fmpq_mat_clear(answer);
    return result;
  }

 private:
  const Rational& inner(std::size_t k, std::size_t l) {
    const auto key = std::minmax(k, l);
    const auto found = inner_.find(key);
    return found != inner_.end() ? found->second : inner_.emplace(key, dot(columns_[k], columns_[l])).first->second;
  }

  const std::vector<Vector>& columns_;
  std::map<std::pair<std::size_t, std::size_t>, Rational> inner_;
};

}  // namespace

double ExactAnswer::condition() const {
  return feasible ? norm * largest_row : std::numeric_limits<double>::infinity();
}

ExactAnswer solve_exactly(const MarginProblem& problem) {
  Columns columns = columns_of(problem);
  ExactAnswer answer{.largest_row = columns.largest_row};
  if (columns.impossible) return answer;
  // Scales W so that right-hand sides are about 1.
  slong unit = std::numeric_limits<slong>::min();
  for (const Vector& column : columns.all) {
    if (column.back().sign() != 0) unit = std::max(unit, column.back().scientific().second);
  }
  answer.feasible = true;
  if (unit == std::numeric_limits<slong>::min()) return answer;
  for (Vector& column : columns.all) column.back().shift(-unit);

  const std::size_t size = columns.all.front().size();
  LeastSquares squares(columns.all);
  std::vector<std::size_t> set;
  Vector weights(columns.all.size()), residual;
  for (;;) {
    residual.assign(size, Rational());
    residual.back() = 1;
    for (const std::size_t k : set) {
      for (std::size_t j = 0; j < size; ++j) residual[j] -= weights[k] * columns.all[k][j];
    }
    std::size_t best = columns.all.size();
    double most = 0;
    for (std::size_t k = 0; k < columns.all.size(); ++k) {
      const Rational gain = dot(columns.all[k], residual);
      if (gain.sign() <= 0) continue;
      const auto [mantissa, exponent] = gain.scientific();
      const double size_of_gain = std::log2(mantissa) + static_cast<double>(exponent);
      if (best < columns.all.size() && size_of_gain <= most) continue;
      best = k;
      most = size_of_gain;
    }
    if (best == columns.all.size()) break;
    set.push_back(best);
    for (;;) {
      const Vector target = squares.solve(set);
      std::size_t blocking = set.size();
      Rational step(1);
      for (std::size_t i = 0; i < set.size(); ++i) {
        if (target[i].sign() > 0) continue;
        const Rational reach = weights[set[i]] / (weights[set[i]] - target[i]);
        if (blocking < set.size() && !(reach < step)) continue;
        step = reach;
        blocking = i;
      }
      for (std::size_t i = 0; i < set.size(); ++i) weights[set[i]] += step * (target[i] - weights[set[i]]);
      if (blocking == set.size()) break;
      weights[set[blocking]] = Rational();
      std::erase_if(set, [&](std::size_t k) { return weights[k].sign() == 0; });
    }
  }
  if (residual.back().sign() == 0) {
    answer.feasible = false;
    return answer;
  }
  Rational square;
  for (std::size_t j = 0; j + 1 < size; ++j) square += residual[j] * residual[j];
  square /= residual.back() * residual.back();
  square.shift(2 * unit);
  answer.norm = square_root(square);
  return answer;
}

}  // namespace attsvm::test
