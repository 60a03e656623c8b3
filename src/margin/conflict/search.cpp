#include "margin/conflict/search.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/blas.h"
#include "base/limits.h"
#include "margin/conflict/balance_rows.h"
#include "margin/frobenius/normal_matrix.h"
#include "margin/rows/normal_equations.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kMeetsNearly = 1e-10;  // violation that counts as rounding, relative to the largest |b|
constexpr double kBalanced = 1e-14;     // ‖Σ λ a‖ relative to Σ |λ| ‖a‖ at which Newton's method is done
constexpr double kProof = 5e-13;        // the same after recomputation: half of what a certificate may have
constexpr double kFairShare = 1e-6;     // least share of the demand in a proof that must be the problem's own
constexpr Index kIterationLimit = 300;  // Newton steps
constexpr Index kGradientLimit = 60;    // conjugate gradients per Newton step
constexpr Index kSearchLimit = 40;      // slopes per line search
constexpr Index kFactorLimit = 2048;    // unknowns up to which a factorisation may help the conjugate gradients
constexpr double kRidge = 1e-7;         // multiple of I that keeps it definite, relative to the mean of its diagonal
constexpr Index kRefreshPeriod = 5;     // steps after which row values are computed instead of updated
constexpr Index kFewRowsPeriod = 4, kFewRows = 100;  // period and size of the search among the strongest rows
constexpr double kStandsOut = 0.1;                   // strength of such rows, relative to the strongest
constexpr Index kBalanceNumbers = 30'000'000;        // numbers that balance_rows may copy: 240 MB

/// What a pass over all rows finds at the current W.
struct Look {
  double size = 0, strongest = 0;            // Σ |λ| ‖a‖, max |λ| ‖a‖
  double demand = 0, raised_demand = 0;      // Σ b λ, for the problem's b and for those aimed at
  double least_factor = 0, homogeneous = 0;  // multiple of W that meets rows with b > 0; violation of rows with b = 0
  double worst = 0;                          // violation of any row
  Index active = 0, changed = 0;             // rows with λ ≠ 0, and rows that became or ceased to be such

  void operator+=(const Look& other) {
    size += other.size;
    demand += other.demand;
    raised_demand += other.raised_demand;
    strongest = std::max(strongest, other.strongest);
    least_factor = std::max(least_factor, other.least_factor);
    homogeneous = std::max(homogeneous, other.homogeneous);
    worst = std::max(worst, other.worst);
    active += other.active;
    changed += other.changed;
  }
};

struct Slope {
  double value = 0, curvature = 0;
  void operator+=(const Slope& other) {
    value += other.value;
    curvature += other.curvature;
  }
};

class NewtonSearch {
 public:
  NewtonSearch(const MarginProblem& problem, Threads& threads);
  ConflictSearch run(const std::function<bool()>& stop);

 private:
  void lower();
  bool find_impossible_row(ConflictSearch& result) const;
  Look look();
  bool separated(const Look& now, double& factor) const;
  bool newton_step(Index active, double tolerance, const std::function<bool()>& stop);
  bool prepare(Index active);
  double exact_step() const;
  bool few_rows_conflict(const Look& now, Eigen::VectorXd& lambda) const;
  bool prove(const Look& now, Eigen::VectorXd& lambda) const;
  std::vector<Index> rows_above(double strength, Index most) const;
  double strength(Index k) const { return std::abs(lambda_(k)) * std::sqrt(products_.square_sizes()(k)); }

  SingleThreadBlas blas_;
  const MarginProblem& problem_;
  Threads& threads_;
  NormalEquations equations_;
  RowProducts& products_;
  const RowLoop& loop_;
  double scale_ = 0;         // largest |b|
  bool homogeneous_ = true;  // no row bounds W from above, so W may be scaled up
  Eigen::VectorXd unit_;     // 1/‖a_k‖², 0 on zero rows
  Eigen::VectorXd rhs_;      // b, raised on some rows if raised_
  bool raised_ = false;      // rhs_ exceeds b on some rows
  Eigen::VectorXd W_, value_, lambda_, weight_, gradient_;
  std::optional<NormalMatrix> normal_;
  bool slow_ = false;  // conjugate gradients ran into their limit
};

NewtonSearch::NewtonSearch(const MarginProblem& problem, Threads& threads)
    : problem_(problem),
      threads_(threads),
      equations_(problem, threads),
      products_(equations_.products()),
      loop_(products_.loop()) {
  const Index rows = problem.rows();
  unit_.resize(rows);
  for (Index k = 0; k < rows; ++k) {
    const double b = problem.rhs(k), square = products_.square_sizes()(k);
    unit_(k) = square > 0 ? 1 / square : 0;
    scale_ = std::max(scale_, std::abs(b));
    if (b < 0 || (b != 0 && problem.equal(k))) homogeneous_ = false;
  }
  rhs_ = Eigen::VectorXd::NullaryExpr(rows, [&](Index k) { return problem.rhs(k); });
  // Rows ≥ 0 would be met only in the limit. Raising their b finds W sooner, and the proof stays valid if other rows
  // contribute to its demand too.
  for (Index k = 0; homogeneous_ && k < rows; ++k) {
    if (rhs_(k) != 0 || problem.equal(k)) continue;
    rhs_(k) = scale_;
    raised_ = true;
  }
  W_.setZero(products_.unknowns());
  for (auto* numbers : {&value_, &lambda_, &weight_}) numbers->setZero(rows);
}

ConflictSearch NewtonSearch::run(const std::function<bool()>& stop) {
  ConflictSearch result;
  result.lambda.setZero(problem_.rows());
  result.W.setZero(problem_.d(), problem_.dz());
  if (find_impossible_row(result)) return result;
  double tolerance = 0.1, factor = 1, best = kInfinity;
  if (scale_ == 0) {  // W = 0 is the answer
    result.outcome = ConflictSearch::Outcome::separable;
    return result;
  }
  bool fresh = true;
  for (Index stuck = 0;; ++result.iterations) {
    if (!fresh && result.iterations % kRefreshPeriod == 0) {
      products_.values(W_, value_);
      fresh = true;
    }
    Look now = look();
    if (!fresh && separated(now, factor)) {  // recompute before judging
      products_.values(W_, value_);
      fresh = true;
      now = look();
    }
    if (separated(now, factor)) {
      result.outcome = ConflictSearch::Outcome::separable;
      W_ *= factor;
      break;
    }
    products_.adjoint(lambda_, gradient_);
    const double balance = gradient_.norm() / now.size;
    stuck = balance < 0.5 * best ? 0 : stuck + 1;
    best = std::min(best, balance);
    const bool over = result.iterations == kIterationLimit || (balance <= kProof && stuck > 2);
    const bool balanced = balance <= kBalanced || over;
    const bool try_few = balanced || result.iterations % kFewRowsPeriod == kFewRowsPeriod - 1;
    if ((try_few && few_rows_conflict(now, result.lambda)) || (balanced && prove(now, result.lambda))) {
      result.outcome = ConflictSearch::Outcome::conflict;
      break;
    }
    if (balanced && raised_) {
      lower();
      best = kInfinity;
      continue;
    }
    if (over || stop() || newton_step(now.active, tolerance, stop)) break;
    fresh = false;
    tolerance = std::clamp(3.0 * static_cast<double>(now.changed) / static_cast<double>(now.active), 1e-6, 0.1);
  }
  result.W = ConstRows(W_.data(), problem_.d(), problem_.dz());
  if (result.outcome != ConflictSearch::Outcome::conflict) result.lambda.setZero();
  return result;
}

void NewtonSearch::lower() {
  for (Index k = 0; k < problem_.rows(); ++k) rhs_(k) = problem_.rhs(k);
  raised_ = false;
}

/// Finds a zero row, whose value is 0 for every W, with a right-hand side that it cannot meet.
bool NewtonSearch::find_impossible_row(ConflictSearch& result) const {
  for (Index k = 0; k < problem_.rows(); ++k) {
    const double b = problem_.rhs(k);
    if (unit_(k) != 0 || !(b > 0 || (problem_.equal(k) && b != 0))) continue;
    result.lambda(k) = 1 / b;
    result.outcome = ConflictSearch::Outcome::conflict;
    return true;
  }
  return false;
}

/// Computes λ and weights for the current values, and their sums.
Look NewtonSearch::look() {
  return loop_.total<Look>([&](Index first, Index last, Look& sum) {
    for (Index k = first; k < last; ++k) {
      if (unit_(k) == 0) continue;
      const double b = problem_.rhs(k), missing = rhs_(k) - value_(k);
      const bool equal = problem_.equal(k), active = equal || missing > 0, was_active = weight_(k) > 0;
      const double violation = equal ? std::abs(b - value_(k)) : std::max(b - value_(k), 0.0);
      lambda_(k) = active ? missing * unit_(k) : 0;
      weight_(k) = active ? unit_(k) : 0;
      sum.active += active ? 1 : 0;
      sum.changed += active != was_active ? 1 : 0;
      sum.demand += b * lambda_(k);
      sum.raised_demand += rhs_(k) * lambda_(k);
      sum.size += strength(k);
      sum.strongest = std::max(sum.strongest, strength(k));
      sum.worst = std::max(sum.worst, violation);
      if (b > 0) sum.least_factor = std::max(sum.least_factor, value_(k) > 0 ? b / value_(k) : kInfinity);
      if (b == 0) sum.homogeneous = std::max(sum.homogeneous, violation);
    }
  });
}

/// Whether a multiple of W meets all rows.
bool NewtonSearch::separated(const Look& now, double& factor) const {
  factor = homogeneous_ ? now.least_factor : 1;
  if (!homogeneous_) return now.worst <= kMeetsNearly * scale_;
  return factor < kInfinity && factor * now.homogeneous <= kMeetsNearly * scale_;
}

/// Factorises for the next step if conjugate gradients ran into their limit. True: there is a factorisation.
bool NewtonSearch::prepare(Index active) {
  if (!slow_ || products_.unknowns() > kFactorLimit) return false;
  if (!normal_) normal_.emplace(problem_, products_.square_sizes(), threads_);
  const double mean = static_cast<double>(active) / static_cast<double>(products_.unknowns());
  return normal_->factor(weight_ / (kRidge * mean));
}

/// Runs conjugate gradients on the active rows, then goes to the best point along the step. True: asked to stop.
bool NewtonSearch::newton_step(Index active, double tolerance, const std::function<bool()>& stop) {
  const bool factored = prepare(active);
  bool stopped = false;
  const Index count = equations_.solve(
      gradient_, weight_, 0, kGradientLimit, tolerance,
      [&](Eigen::VectorXd& x) {
        if (factored) normal_->solve(x);
      },
      [&] { return stopped = stop(); });
  if (stopped) return true;
  slow_ = slow_ || count == kGradientLimit;
  const double step = exact_step();
  W_ += step * equations_.x();
  equations_.add(step, equations_.values(), value_);
  return false;
}

/// Newton's method on the slope along the step, which is monotone and piecewise linear; bisection if that leaves the
/// interval.
double NewtonSearch::exact_step() const {
  const Eigen::VectorXd& value_step = equations_.values();
  double step = 1, low = 0, high = kInfinity;
  for (Index count = 0; count < kSearchLimit; ++count) {
    const auto slope = loop_.total<Slope>([&](Index first, Index last, Slope& sum) {
      for (Index k = first; k < last; ++k) {
        const double missing = rhs_(k) - value_(k) - step * value_step(k);
        if (missing <= 0 && !problem_.equal(k)) continue;
        sum.value += unit_(k) * missing * value_step(k);
        sum.curvature += unit_(k) * value_step(k) * value_step(k);
      }
    });
    (slope.value > 0 ? low : high) = step;
    if (!(slope.curvature > 0)) break;
    const double before = step;
    step += slope.value / slope.curvature;
    if (!(step > low && step < high)) step = high < kInfinity ? (low + high) / 2 : 2 * low;
    if (std::abs(step - before) <= 1e-12 * step) break;
  }
  return step;
}

/// The rows of at least this strength, ascending; none if there are too many.
std::vector<Index> NewtonSearch::rows_above(double least, Index most) const {
  std::vector<Index> rows;
  for (Index k = 0; k < problem_.rows(); ++k) {
    if (lambda_(k) == 0 || strength(k) < least) continue;
    if (static_cast<Index>(rows.size()) == most) return {};
    rows.push_back(k);
  }
  return rows;
}

/// Tries to prove a conflict from a few strong rows, which stand out long before all others are met.
bool NewtonSearch::few_rows_conflict(const Look& now, Eigen::VectorXd& lambda) const {
  std::vector<Index> rows = rows_above(kStandsOut * now.strongest, problem_.rows());
  const auto most = static_cast<std::size_t>(std::min(kFewRows, kBalanceNumbers / products_.unknowns()));
  if (rows.size() > most) {
    const auto stronger = [&](Index a, Index b) {
      return strength(a) != strength(b) ? strength(a) > strength(b) : a < b;
    };
    std::nth_element(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(most), rows.end(), stronger);
    rows.resize(most);
    std::sort(rows.begin(), rows.end());
  }
  return !rows.empty() && balance_rows(problem_, rows, lambda) <= kProof;
}

/// Tries to prove a conflict with as few of the present multipliers as suffice; else balances the rows that have
/// multipliers again.
bool NewtonSearch::prove(const Look& now, Eigen::VectorXd& lambda) const {
  if (!(now.demand > kFairShare * now.raised_demand)) return false;
  for (const double negligible : {1e-6, 1e-10, 1e-14, 0.0}) {
    for (Index k = 0; k < problem_.rows(); ++k) {
      lambda(k) = strength(k) > negligible * now.strongest ? lambda_(k) : 0;
    }
    if (imbalance(problem_, lambda) <= kProof) return true;
  }
  for (const double least : {0.1, 1e-3, 1e-6, 0.0}) {
    const std::vector<Index> rows = rows_above(least * now.strongest, kBalanceNumbers / products_.unknowns());
    if (!rows.empty() && balance_rows(problem_, rows, lambda) <= kProof) return true;
  }
  return false;
}

}  // namespace

ConflictSearch search_conflict(const MarginProblem& problem, Threads& threads, const std::function<bool()>& stop) {
  return NewtonSearch(problem, threads).run(stop);
}

}  // namespace attsvm::internal
