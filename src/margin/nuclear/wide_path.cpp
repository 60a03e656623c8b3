#include "margin/nuclear/wide_path.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kMostProducts = 500'000;  // wide multiplications per step
constexpr Index kMostSteps = 600;         // 30 to 300 were measured
constexpr slong kLastMu = -110;           // log₂ of μ at the end, which is about the gap of W then, for ‖W‖ = 1
// log₂ of the amount by which right-hand sides of inequalities are lowered: the path needs a W that meets all of them
// with slack.
constexpr slong kSlack = -110;
constexpr slong kDependent = -300;  // log₂ of the share of its diagonal entry below which a pivot is zero
constexpr slong kFirstCut = -2, kLargestCut = -32;  // log₂ of the factor from one μ to the next
// Newton decrements: on the path, near it, and at its end, where W must meet the rows to rounding
constexpr double kCentered = 0.1, kNear = 0.5, kSettled = 0x1p-40;

}  // namespace

bool WidePath::suits(const MarginProblem& problem) {
  const Index rows = problem.rows(), sizes = problem.d() + problem.dz();
  return rows * rows * (rows / 6 + sizes) + sizes * sizes * (rows + sizes) <= kMostProducts;
}

bool WidePath::solve(const MarginProblem& problem, double objective, const std::function<bool()>& stop) {
  load(problem, objective);
  start();
  return center(kCentered, stop) && follow(stop) && center(kSettled, stop);
}

void WidePath::load(const MarginProblem& problem, double objective) {
  rows_.load(problem);
  rows_of_problem_ = problem.rows();
  iterations_ = 0;
  scale_ = std::exp2(std::ilogb(objective));
  rhs_.clear();
  equal_.clear();
  for (Index k = 0; k < rows_.count(); ++k) {
    equal_.push_back(problem.equal(rows_.row(k)) ? 1 : 0);
    rhs_.push_back(Wide(problem.rhs(rows_.row(k)) / scale_).shifted(-rows_.exponent(k)));
    if (equal_.back() == 0) rhs_.back() -= Wide(1).shifted(kSlack);
  }
}

/// Starts with equal multipliers for all inequalities, half as large as the feasible set allows.
void WidePath::start() {
  mu_ = 1;
  WideVector lambda(at(rows_.count()));
  Wide total;
  for (Index k = 0; k < rows_.count(); ++k) total += sqrt(rows_.inner(k, k));
  for (Index k = 0; k < rows_.count(); ++k) {
    if (equal_[at(k)] == 0) lambda[at(k)] = Wide(0.5) / total;
  }
  enter(std::move(lambda), point_);
  factorise();
}

/// Computes the point of λ. False: λ is not inside the feasible set.
bool WidePath::enter(WideVector lambda, Point& point) const {
  const Index d = rows_.d(), dz = rows_.dz();
  for (std::size_t k = 0; k < lambda.size(); ++k) {
    if (equal_[k] == 0 && lambda[k].sign() <= 0) return false;
  }
  WideVector A, At(at(d * dz));
  rows_.weigh(lambda, A);
  for (Index a = 0; a < d; ++a) {
    for (Index b = 0; b < dz; ++b) At[at(b * d + a)] = A[at(a * dz + b)];
  }
  std::vector<WideVector> L(at(dz));  // of I − AᵀA
  for (Index i = 0; i < dz; ++i) {
    for (Index j = 0; j <= i; ++j) {
      Wide entry = Wide(i == j ? 1 : 0) - dot(At.data() + i * d, At.data() + j * d, d);
      entry -= dot(L[at(i)].data(), L[at(j)].data(), j);
      if (i == j && entry.sign() <= 0) return false;
      L[at(i)].push_back(i == j ? sqrt(entry) : entry / L[at(j)][at(j)]);
    }
  }
  point.R.assign(at(dz * dz), Wide());
  for (Index c = 0; c < dz; ++c) {
    WideVector unit(at(dz));
    unit[at(c)] = 1;
    WideVector column = solve_transposed(L, solve_lower(L, unit));  // R is symmetric
    std::move(column.begin(), column.end(), point.R.begin() + c * dz);
  }
  point.Y.assign(at(d * dz), Wide());
  point.P.assign(at(d * d), Wide());
  for (Index a = 0; a < d; ++a) {
    for (Index b = 0; b < dz; ++b) point.Y[at(a * dz + b)] = dot(A.data() + a * dz, point.R.data() + b * dz, dz);
    for (Index c = 0; c < d; ++c)
      point.P[at(a * d + c)] = Wide(a == c ? 1 : 0) + dot(point.Y.data() + a * dz, A.data() + c * dz, dz);
  }
  rows_.values(point.Y, point.slope);
  for (std::size_t k = 0; k < lambda.size(); ++k) {
    point.slope[k] *= Wide(-2);
    if (equal_[k] == 0) point.slope[k] += Wide(1) / lambda[k];
  }
  point.lambda = std::move(lambda);
  return true;
}

/// Second derivatives are −2 [(δ_kᵀPδ_l)(ζ_kᵀRζ_l) + (δ_kᵀYζ_l)(δ_lᵀYζ_k)], and −1/λ² of inequalities.
void WidePath::factorise() {
  ++iterations_;
  const Index d = rows_.d(), dz = rows_.dz(), n = rows_.count();
  WideVector Pd(at(n * d)), Yz(at(n * d)), Rz(at(n * dz));
  for (Index k = 0; k < n; ++k) {
    const bool same = k > 0 && rows_.group(k) == rows_.group(k - 1);
    const Wide* zeta = rows_.zeta(rows_.group(k));
    for (Index a = 0; a < d; ++a) {
      Pd[at(k * d + a)] = dot(point_.P.data() + a * d, rows_.delta(k), d);
      Yz[at(k * d + a)] = same ? Yz[at((k - 1) * d + a)] : dot(point_.Y.data() + a * dz, zeta, dz);
    }
    for (Index b = 0; b < dz; ++b)
      Rz[at(k * dz + b)] = same ? Rz[at((k - 1) * dz + b)] : dot(point_.R.data() + b * dz, zeta, dz);
  }
  L_.assign(at(n), {});
  for (Index k = 0; k < n; ++k) {
    WideVector& row = L_[at(k)];
    for (Index l = 0; l <= k; ++l) {
      Wide entry = dot(rows_.delta(l), Pd.data() + k * d, d) * dot(rows_.zeta(rows_.group(l)), Rz.data() + k * dz, dz);
      entry.add_product(dot(rows_.delta(k), Yz.data() + l * d, d), dot(rows_.delta(l), Yz.data() + k * d, d));
      entry = entry.shifted(1);
      if (k == l && equal_[at(k)] == 0) entry += Wide(1) / (point_.lambda[at(k)] * point_.lambda[at(k)]);
      Wide rest = entry - dot(row.data(), L_[at(l)].data(), l);
      if (k > l) {
        row.push_back(L_[at(l)][at(l)].is_zero() ? Wide() : rest / L_[at(l)][at(l)]);
      } else {
        const bool dependent = rest.sign() <= 0 || rest <= entry.shifted(kDependent);
        row.push_back(dependent ? Wide() : sqrt(rest));
      }
    }
  }
}

/// Dependent equations, whose pivots are zero, keep their multipliers.
WideVector WidePath::newton_step(const WideVector& right) const { return solve_transposed(L_, solve_lower(L_, right)); }

/// b/μ plus the slope of the barrier, which is zero at the center.
WideVector WidePath::imbalance(const Point& point, const Wide& mu) const {
  WideVector sum = point.slope;
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += rhs_[k] / mu;
  return sum;
}

/// Newton's step at point_, and its length in the barrier's own metric.
Wide WidePath::decrement(WideVector& step) const {
  const WideVector right = imbalance(point_, mu_);
  step = newton_step(right);
  const Wide square = dot(step.data(), right.data(), static_cast<Index>(step.size()));
  return square.sign() > 0 ? sqrt(square) : Wide();
}

/// Runs Newton's method for this μ until the decrement is at most `within`; damped far from the center so that λ stays
/// inside.
bool WidePath::center(double within, const std::function<bool()>& stop) {
  for (WideVector step;;) {
    const Wide length = decrement(step);
    const bool near = length <= Wide(kNear);
    WideVector lambda = point_.lambda;
    for (std::size_t k = 0; k < lambda.size(); ++k)
      lambda[k].add_product(near ? Wide(1) : Wide(1) / (Wide(1) + length), step[k]);
    if (iterations_ > kMostSteps || stop() || !enter(std::move(lambda), point_)) return false;
    factorise();
    if (length <= Wide(within)) return true;
  }
}

/// Follows the path to smaller μ: steps along its tangent as far as that stays close to the path, then recenters.
bool WidePath::follow(const std::function<bool()>& stop) {
  for (slong cut = kFirstCut; mu_.exponent() > kLastMu;) {
    const Wide next = mu_.shifted(cut);
    WideVector lambda = newton_step(rhs_), step;
    const Wide share = (Wide(1) - Wide(1).shifted(cut)) / mu_;
    for (std::size_t k = 0; k < lambda.size(); ++k) lambda[k] = point_.lambda[k] + share * lambda[k];
    Point before = point_;
    const Wide mu = mu_;
    std::vector<WideVector> factor;
    const bool inside = enter(std::move(lambda), point_);
    if (inside) {
      factor = L_;
      factorise();
    }
    mu_ = next;
    const Wide length = inside ? decrement(step) : Wide(1);
    if (inside && length <= Wide(kNear)) {
      if (length <= Wide(kCentered)) cut = std::max(2 * cut, kLargestCut);
    } else {
      point_ = std::move(before);
      if (inside) L_ = std::move(factor);
      if (cut < -1) {
        mu_ = mu;
        cut /= 2;
        continue;
      }
    }
    if (!center(kCentered, stop)) return false;
  }
  return true;
}

/// W = 2μY meets the rows with slack μ/λ.
void WidePath::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W.resize(rows_.d(), rows_.dz());
  for (Index k = 0; k < W.size(); ++k) W.data()[k] = (point_.Y[at(k)] * mu_).to_double() * 2 * scale_;
  lambda.setZero(rows_of_problem_);
  for (Index k = 0; k < rows_.count(); ++k)
    lambda(rows_.row(k)) = point_.lambda[at(k)].shifted(-rows_.exponent(k)).to_double();
}

}  // namespace attsvm::internal
