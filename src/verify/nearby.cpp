#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/limits.h"
#include "base/refuse.h"
#include "base/wide.h"
#include "verify/rules.h"

// W in doubles meets rows that ask for 0 only up to rounding. Whether that is good enough cannot be decided row by row:
// where two rows nearly coincide, a W that misses both by little may be far from every W that meets them. So this file
// searches, in wide numbers, for the nearest matrix to W that meets these rows, and checks its other rows.

namespace attsvm::internal::proof {
namespace {

// Limits of the search over all rows: equations, and multiplications per pass over all rows. Beyond them each query is
// judged by itself, and beyond a limit on multiplications each row.
constexpr std::size_t kMostEquations = 300;
constexpr double kMostProducts = 1e6, kMostProductsPerQuery = 2e7;
constexpr slong kDependent = -98;  // log₂ of the squared share of a row outside the span of others that is none: less
                                   // than rounding the tokens may have left there
constexpr slong kExactlyDependent = -200;  // the same where tokens count as exact: rows left out must read kNothing
constexpr slong kNothing = -400;           // log₂ of what wide numbers read as 0, relative to the terms
constexpr std::string_view kIgnored =
    "whether the rows that ask for 0 hold where they depend on each other but for rounding of the tokens";
constexpr slong kMet = -100;  // log₂ of the violation, relative to ‖δ‖ ‖W‖ ‖ζ‖, that is none
constexpr int kRounds = 20;

class NearestW {
 public:
  /// Rows whose squared share outside the span of others is at most 2^`dependent` are implied by those.
  NearestW(const Question& question, const RowMatrix& W, slong dependent)
      : question_(question), dependent_(dependent), start_(at(W.size())) {
    for (Index k = 0; k < W.size(); ++k) start_[at(k)] = W.data()[k];
    for (const Row& row : question.rows()) {
      Factors factors{WideVector(at(question.d())), WideVector(at(question.dz()))};
      for (Index a = 0; a < question.d(); ++a) {
        factors.delta[at(a)] = question.sign(row) * question.token(row, row.keep)[a];
        if (row.drop >= 0) factors.delta[at(a)] -= question.token(row, row.drop)[a];
      }
      for (Index b = 0; b < question.dz(); ++b) factors.zeta[at(b)] = question.zeta(row.query, b);
      rows_.push_back(std::move(factors));
    }
    is_taken_.assign(rows_.size(), 0);
    W_ = start_;
    size_ = norm(start_);
  }

  /// Moves W so that it meets the rows that ask for 0: equations, and inequalities that it misses. False: no such W
  /// after kRounds rounds.
  bool move() {
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t before = taken_.size();
      for_each_row([&](std::size_t k, const Wide& value) {
        const Row& row = question_.rows()[k];
        if (row.rhs != 0 || is_taken_[k] != 0 || (row.equal ? value.is_zero() : value.sign() >= 0)) return;
        if (round > 0 && is_nothing(k, value, kMet)) return;
        take(k);
      });
      if (taken_.size() == before) return true;
      project();
    }
    return false;
  }

  /// How far W moved, relative to its size.
  double distance() const {
    WideVector step = W_;
    for (std::size_t k = 0; k < step.size(); ++k) step[k] -= start_[k];
    return (norm(step) / size_).to_double();
  }

  /// Whether W also meets the rows that were left out because others imply them.
  bool meets_implied() const {
    bool all = true;
    for_each_row([&](std::size_t k, const Wide& value) {
      if (is_taken_[k] != 0) all = all && (value.is_zero() || is_nothing(k, value, kNothing));
    });
    return all;
  }

  /// How much more the W found costs than the first one, with a soft margin.
  double price(const std::vector<double>& penalty) {
    const Wide after = price_here(penalty);
    std::swap(W_, start_);
    const Wide before = price_here(penalty);
    std::swap(W_, start_);
    return std::max(0.0, (after - before).to_double() * (1 + kRoundedSize));
  }

  /// ε such that the W found meets every row ≥ b > 0 once it is scaled by 1 + ε; infinite where no scaling helps.
  double scaling() const {
    double least = 0;
    for_each_row([&](std::size_t k, const Wide& value) {
      const Row& row = question_.rows()[k];
      if (row.equal || row.rhs <= 0 || Wide(row.rhs) <= value) return;
      least = std::max(least, value.sign() > 0 ? (Wide(row.rhs) / value - Wide(1)).to_double() : kInfinity);
    });
    return least;
  }

 private:
  struct Factors {
    WideVector delta, zeta;
  };

  static std::size_t at(Index k) { return static_cast<std::size_t>(k); }
  static Wide norm(const WideVector& x) { return sqrt(dot(x.data(), x.data(), static_cast<Index>(x.size()))); }

  template <class Visit>
  void for_each_row(const Visit& visit) const {
    const Index d = question_.d(), dz = question_.dz();
    WideVector u(at(d));
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      if (k == 0 || question_.rows()[k].query != question_.rows()[k - 1].query) {
        for (Index a = 0; a < d; ++a) u[at(a)] = dot(W_.data() + a * dz, rows_[k].zeta.data(), dz);
      }
      visit(k, dot(rows_[k].delta.data(), u.data(), d));
    }
  }
  Wide read(std::size_t k) const {
    const Index d = question_.d(), dz = question_.dz();
    WideVector u(at(d));
    for (Index a = 0; a < d; ++a) u[at(a)] = dot(W_.data() + a * dz, rows_[k].zeta.data(), dz);
    return dot(rows_[k].delta.data(), u.data(), d);
  }
  bool is_nothing(std::size_t k, const Wide& value, slong share) const {
    return abs(value) <= (norm(rows_[k].delta) * norm(rows_[k].zeta) * size_).shifted(share);
  }
  Wide price_here(const std::vector<double>& penalty) const {
    WideVector missed(penalty.size());
    for_each_row([&](std::size_t k, const Wide& value) {
      const Row& row = question_.rows()[k];
      if (!row.is_soft()) return;
      Wide short_by = Wide(row.rhs) - value;
      if (short_by > missed[at(row.query)]) missed[at(row.query)] = std::move(short_by);
    });
    Wide sum = dot(W_.data(), W_.data(), static_cast<Index>(W_.size())).shifted(-1);
    for (std::size_t i = 0; i < penalty.size(); ++i) sum.add_product(Wide(penalty[i]), missed[i]);
    return sum;
  }
  Wide inner(std::size_t k, std::size_t l) const {
    return dot(rows_[k].delta.data(), rows_[l].delta.data(), question_.d()) *
           dot(rows_[k].zeta.data(), rows_[l].zeta.data(), question_.dz());
  }

  /// Adds a row to the Cholesky factor of the Gram matrix, unless it depends on the rows taken, which then imply it.
  void take(std::size_t k) {
    WideVector column;
    for (std::size_t j = 0; j < taken_.size(); ++j) {
      column.push_back((inner(k, taken_[j]) - dot(factor_[j].data(), column.data(), static_cast<Index>(j))) /
                       factor_[j][j]);
    }
    const Wide square = inner(k, k);
    const Wide rest = square - dot(column.data(), column.data(), static_cast<Index>(column.size()));
    is_taken_[k] = 1;
    if (rest.sign() <= 0 || rest <= square.shifted(dependent_)) return;
    column.push_back(sqrt(rest));
    factor_.push_back(std::move(column));
    taken_.push_back(k);
  }

  /// The nearest matrix to the first W at which every row taken reads 0.
  void project() {
    const std::size_t count = taken_.size();
    W_ = start_;
    WideVector x(count);
    for (std::size_t j = 0; j < count; ++j)
      x[j] = (read(taken_[j]) - dot(factor_[j].data(), x.data(), static_cast<Index>(j))) / factor_[j][j];
    for (std::size_t j = count; j-- > 0;) {
      x[j] /= factor_[j][j];
      for (std::size_t i = 0; i < j; ++i) x[i] -= factor_[j][i] * x[j];
    }
    const Index d = question_.d(), dz = question_.dz();
    for (std::size_t j = 0; j < count; ++j) {
      const Factors& row = rows_[taken_[j]];
      for (Index a = 0; a < d; ++a) {
        const Wide weight = -(x[j] * row.delta[at(a)]);
        for (Index b = 0; b < dz; ++b) W_[at(a * dz + b)].add_product(weight, row.zeta[at(b)]);
      }
    }
  }

  const Question& question_;
  slong dependent_;
  WideVector start_, W_;
  Wide size_;  // ‖W‖_F
  std::vector<Factors> rows_;
  std::vector<std::size_t> taken_;
  std::vector<char> is_taken_;
  std::vector<WideVector> factor_;
};

/// Equations = 0 that are neither void nor the same as another of their query.
std::size_t count_equations(const Question& question) {
  std::size_t count = 0;
  for (const Group& group : question.groups()) {
    std::set<std::vector<double>> seen;
    for (std::size_t k = group.first; k < group.first + group.count; ++k) {
      const Row& row = question.rows()[k];
      if (!row.equal || row.rhs != 0) continue;
      const auto token = [&](Index t) {
        return std::vector<double>(question.token(row, t), question.token(row, t) + question.d());
      };
      seen.insert(token(row.keep));
      count += seen.insert(token(row.drop)).second ? 1U : 0U;
    }
  }
  return count;
}

/// What rows ≥ 1 may lose where W moves this far: ε as in scaling, for any direction of the move.
double scaling_of_move(const Case& on, double distance) {
  const Ball moved = Ball(distance) * on.arithmetic.frobenius_of_W();
  double most = 0;
  for (const Row& row : on.question.rows()) {
    if (!(row.rhs > 0)) continue;
    most = std::max(most,
                    (moved * on.question.delta_size(row) * on.question.zeta_size(row.query) / Ball(row.rhs)).upper());
  }
  return most < 1 ? most / (1 - most) : kInfinity;
}

/// Large problems: the same for each query by itself. Its equations, and inequalities that it misses, share ζ, so W ζ
/// must be orthogonal to what their δ span. Returns whether rows were left out that are not implied exactly.
bool judge_each_query(const Case& on) {
  bool ignored = false;
  const Question& question = on.question;
  const Index d = question.d(), dz = question.dz();
  const auto at = [](Index k) { return static_cast<std::size_t>(k); };
  WideVector W(at(d * dz)), zeta(at(dz)), u(at(d));
  for (Index k = 0; k < d * dz; ++k) W[at(k)] = on.claim.W.data()[k];
  Wide square;  // squared distance, added up as if the queries were orthogonal
  const Wide size = dot(W.data(), W.data(), d * dz);
  const std::vector<Row>& rows = question.rows();
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
    while (last < rows.size() && rows[last].query == rows[first].query) ++last;
    std::vector<WideVector> basis;
    for (Index b = 0; b < dz; ++b) zeta[at(b)] = question.zeta(rows[first].query, b);
    const Wide zeta_square = dot(zeta.data(), zeta.data(), dz);
    if (zeta_square.is_zero()) continue;
    for (Index a = 0; a < d; ++a) u[at(a)] = dot(W.data() + a * dz, zeta.data(), dz);
    for (std::size_t k = first; k < last; ++k) {
      const Row& row = rows[k];
      if (row.rhs != 0) continue;
      WideVector rest(at(d));
      for (Index a = 0; a < d; ++a) {
        rest[at(a)] = question.sign(row) * question.token(row, row.keep)[a];
        if (row.drop >= 0) rest[at(a)] -= question.token(row, row.drop)[a];
      }
      if (!row.equal && dot(rest.data(), u.data(), d).sign() >= 0) continue;
      const Wide whole = dot(rest.data(), rest.data(), d);
      for (const WideVector& q : basis) {
        const Wide part = -dot(q.data(), rest.data(), d);
        for (Index a = 0; a < d; ++a) rest[at(a)].add_product(part, q[at(a)]);
      }
      const Wide left = dot(rest.data(), rest.data(), d);
      if (whole.is_zero() || left <= whole.shifted(kDependent)) {
        ignored = ignored || left > whole.shifted(kNothing);
        continue;
      }
      const Wide length = sqrt(left);
      for (Wide& entry : rest) entry /= length;
      basis.push_back(std::move(rest));
    }
    for (const WideVector& q : basis) {
      const Wide value = dot(q.data(), u.data(), d);
      square += value * value / zeta_square;
    }
  }
  const double distance = size.is_zero() ? 0 : sqrt(square / size).to_double();
  if (!(distance <= on.settings.tolerance)) {
    reject(
        fmt::format("matrices that meet the rows of each query that ask for 0 are {:.3g} of |W| away, all queries "
                    "together",
                    distance));
  }
  if (on.claim.is_soft()) {
    on.result.distance = distance;  // it has a price
    return ignored;
  }
  const double scaling = scaling_of_move(on, distance);
  if (!std::isfinite(scaling)) reject("a matrix near W that meets the rows that ask for 0 may miss a row >= 1");
  on.result.scaling += scaling + on.result.scaling * scaling;
  return ignored;
}

}  // namespace

Ball judge_nearby(const Case& on) {
  if (!(on.result.homogeneous > 0)) return Ball(0);
  if (on.question.work() > kMostProductsPerQuery) {
    on.result.remark = "whether the rows that ask for 0 nearly depend on each other was not looked at";
    if (on.claim.is_soft() && on.claim.status == "optimal")
      reject("what it costs to meet the rows that ask for 0 is unknown");
    return Ball(0);
  }
  if (on.question.work() > kMostProducts || count_equations(on.question) > kMostEquations) {
    const bool ignored = judge_each_query(on);
    on.result.remark = "whether rows that ask for 0 nearly depend on those of other queries was not looked at";
    if (ignored) on.result.remark += fmt::format("; {}", kIgnored);
    return on.claim.is_soft() ? price_of_moving(on) : Ball(0);
  }
  // Tokens count as exact where W can be judged so; else rows that differ by rounding alone count as one.
  std::optional<NearestW> nearest(std::in_place, on.question, on.claim.W, kDependent);
  bool found = nearest->move();
  if (!found || !nearest->meets_implied()) {
    NearestW exact(on.question, on.claim.W, kExactlyDependent);
    if (exact.move() && exact.meets_implied() && exact.distance() <= on.settings.tolerance) {
      nearest.emplace(std::move(exact));
      found = true;
    } else {
      on.result.remark = kIgnored;
    }
  }
  if (!found) reject("no matrix near W was found that meets the rows that ask for 0");
  on.result.distance = nearest->distance();
  if (!(on.result.distance <= on.settings.tolerance)) {
    reject(fmt::format("the nearest matrix to W that meets the rows that ask for 0 is {:.3g} of |W| away",
                       on.result.distance));
  }
  if (on.claim.is_soft()) return Ball(nearest->price(on.claim.penalty));  // rows ≥ 1 are no obstacle
  const double scaling = nearest->scaling();
  if (!std::isfinite(scaling)) reject("the nearest matrix to W that meets the rows that ask for 0 misses a row >= 1");
  on.result.scaling = std::max(on.result.scaling, scaling);  // counts in the gap
  return Ball(0);
}

}  // namespace attsvm::internal::proof
