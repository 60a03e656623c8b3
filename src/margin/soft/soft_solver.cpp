#include "margin/soft/soft_solver.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/blas.h"
#include "margin/soft/soft_face.h"
#include "margin/soft/wide_soft_set.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason.
constexpr Index kWhole = 1500;       // rows up to which all are taken at once; more of them start with a few each
constexpr Index kMostRows = 12'000;  // in play; more do not fit
constexpr Index kMostSize = 3000;    // of the matrix that is factorised
constexpr Index kMostNumbers = 60'000'000;  // of the rows, written out
constexpr int kRounds = 40;
constexpr Index kFirst = 3, kMore = 2;  // rows of a query that are in play at first, and that join per round
constexpr double kEnough = 1e-13;       // gap beyond which small problems are not pursued
constexpr double kRowTolerance = 0.9e-9;  // of ‖δ‖ ‖W‖ ‖ζ‖: violation of rows that ask for 0 that verify accepts
constexpr double kProduct = 20'000'000;  // multiplications up to which verify checks rows that ask for 0
constexpr double kHidden = 1e-2;         // of the tolerance: rounding that is not looked into
// Of ‖δ‖ ‖W‖ ‖ζ‖, one after the other: rounding W takes as much from a row as a rule, and at most.
constexpr std::array kSoftLifts{0.0, 0.3 * kEpsilon, kEpsilon};

/// A W that meets the rows that ask for 0 is better than one that does not; then the gap decides, or else the bound.
bool is_better(const MarginSolution& a, const MarginSolution& b) {
  if (std::isnan(a.gap) != std::isnan(b.gap)) return std::isnan(b.gap);
  return std::isnan(a.gap) ? a.dual_objective > b.dual_objective : a.gap < b.gap;
}

}  // namespace

SoftSolver::SoftSolver(const MarginProblem& problem, std::vector<double> penalty, double tolerance, StopRule& stop,
                       Threads& threads)
    : problem_(problem),
      penalty_(std::move(penalty)),
      tolerance_(tolerance),
      stop_(stop),
      sums_(problem),
      measure_(threads) {}

/// δᵀWζ − b of every row, rounded once.
Eigen::VectorXd SoftSolver::exact_slacks(const RowMatrix& W) const {
  WideRows rows;
  rows.load(problem_);
  WideVector entries, values;
  for (Index k = 0; k < W.size(); ++k) entries.emplace_back(W.data()[k]);
  rows.values(entries, values);
  Eigen::VectorXd slack(problem_.rows());
  for (Index k = 0; k < problem_.rows(); ++k) slack(k) = -problem_.rhs(k);
  for (Index k = 0; k < rows.count(); ++k)
    slack(rows.row(k)) = (values[at(k)].shifted(rows.exponent(k)) - Wide(problem_.rhs(rows.row(k)))).to_double();
  return slack;
}

/// Computes W from the multipliers, unless it is there, and all that follows from both; again and exactly if rounding
/// hides too much.
void SoftSolver::certify(MarginSolution& answer, bool exactly) {
  using Arithmetic = RowMeasure::Arithmetic;
  measure_.start(exactly ? Arithmetic::wide : problem_.rows() <= kWhole ? Arithmetic::extended : Arithmetic::fast);
  keep_within(problem_, penalty_, answer.dual);
  if (answer.W.size() == 0) {
    answer.W.setZero(problem_.d(), problem_.dz());
    measure_.take(problem_, sums_, answer.W, answer.dual, kInfinity);
    answer.W = measure_.A().leftCols(problem_.dz());
  }
  measure_.take(problem_, sums_, answer.W, answer.dual, kInfinity);
  const double size = norm_of(answer.W), weighted = measure_.norm();
  answer.penalty = penalty_;
  answer.xi.setZero(static_cast<Index>(penalty_.size()));
  answer.slack = exactly ? exact_slacks(answer.W) : measure_.values();
  answer.violation = 0;
  bool met = true, hard = false;
  long double demand = 0;
  Eigen::VectorXd delta(problem_.d());
  for (const MarginGroup& group : problem_.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (!exactly) answer.slack(k) -= problem_.rhs(k);
      const double slack = answer.slack(k);
      demand += static_cast<long double>(problem_.rhs(k)) * answer.dual(k);
      if (is_soft(problem_, k)) {
        answer.xi(group.query) = std::max(answer.xi(group.query), -slack);
        continue;
      }
      hard = true;
      const double missing = problem_.equal(k) ? std::abs(slack) : std::max(0.0, -slack);
      if (missing == 0) continue;
      answer.violation = std::max(answer.violation, missing);
      problem_.delta(group, k, delta.data());
      const double reach = norm_of(delta) * norm_of(ConstVector(group.z, problem_.dz())) * size;
      met = met && missing <= kRowTolerance * reach;
    }
  }
  long double price = static_cast<long double>(size) * size / 2;
  for (std::size_t i = 0; i < penalty_.size(); ++i) {
    if (const double xi = answer.xi(static_cast<Index>(i)); xi > 0) price += static_cast<long double>(penalty_[i]) * xi;
  }
  long double bound = demand - static_cast<long double>(weighted) * weighted / 2;
  if (!(bound > 0)) {  // multipliers that prove nothing
    answer.dual.setZero();
    bound = 0;
  }
  bound = std::min(bound, price);
  answer.objective = static_cast<double>(price);  // which may be too small for all of its digits
  answer.dual_objective = static_cast<double>(bound);
  answer.gap = !met ? kNaN : price > 0 ? static_cast<double>((price - bound) / price) : 0;
  answer.support = 0;
  for (const MarginGroup& group : problem_.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      const double room = answer.slack(k) + (is_soft(problem_, k) ? answer.xi(group.query) : 0);
      if (std::abs(room) <= kSupportTolerance * std::max(1.0, std::abs(problem_.rhs(k)))) ++answer.support;
    }
  }
  answer.residual = 0;
  // A value that rounding hides below its row costs its query something all the same.
  const double rounding = exactly ? 0 : kEpsilon + measure_.value_error();
  long double hidden = exactly ? 0 : static_cast<long double>(measure_.error()) * (weighted + measure_.error());
  for (const MarginGroup& group : problem_.groups()) {
    const auto slack = answer.slack.segment(group.first_row, group.rows);
    if (slack.minCoeff() < rounding) hidden += penalty_[static_cast<std::size_t>(group.query)] * rounding;
  }
  if (hidden > kHidden * tolerance_ * price && WideSoftSet::suits(problem_)) {
    certify(answer, true);
    return;
  }
  const bool close = met && answer.gap <= tolerance_ && std::isfinite(answer.objective) && answer.dual.allFinite();
  const bool sure = hidden <= (tolerance_ - answer.gap) * price;
  answer.status = close && sure ? MarginStatus::optimal : MarginStatus::stalled;
  answer.unique.reset();
  const double work = static_cast<double>(problem_.d()) * static_cast<double>(problem_.rows() + problem_.dz());
  if (close && (hard || !sure) && work <= kProduct) {  // whether a W near this one meets the rows that ask for 0, ...
    answer.status = MarginStatus::optimal;
    if (!verify(problem_.task(), stored(problem_, answer, tolerance_), {.tolerance = tolerance_}).valid) {
      answer.status = MarginStatus::stalled;
      if (hard) answer.gap = kNaN;
    }
  }
  if (answer.status == MarginStatus::optimal) answer.unique = true;
}

MarginSolution SoftSolver::certified(const SoftRows& rows, const SoftPoint& point, std::string_view method) {
  MarginSolution candidate;
  candidate.dual = rows.multipliers(point.x, problem_.rows());
  candidate.method = method;
  certify(candidate);
  return candidate;
}

/// Keeps the candidate if it is better than the best so far.
void SoftSolver::keep(const MarginSolution& candidate) {
  if (has_answer_ && !is_better(candidate, best_)) return;
  best_ = candidate;
  has_answer_ = true;
}

/// The answer without slacks is the answer if its multipliers, scaled so that W = A(λ), stay within the penalties.
bool SoftSolver::take_hard(const Hard& hard) {
  MarginSolution candidate;
  hard(candidate);
  iterations_ += candidate.iterations;
  if (candidate.status != MarginStatus::optimal) return false;
  candidate.dual *= candidate.objective;
  Eigen::VectorXd within = candidate.dual;
  keep_within(problem_, penalty_, within);
  if (within != candidate.dual) return false;
  const RowMatrix W = candidate.W;
  certify(candidate);
  if (candidate.status != MarginStatus::optimal) {  // rounding left a row short, which a large penalty makes expensive
    candidate.W = W * (1 + 4 * kEpsilon * (1 + measure_.reach()));
    certify(candidate);
  }
  if (candidate.status != MarginStatus::optimal) return false;
  best_ = std::move(candidate);
  has_answer_ = true;
  return true;
}

MarginSolution SoftSolver::follow(const std::vector<Index>& rows, double tolerance) {
  const SoftRows chosen(problem_, penalty_, rows);
  if (chosen.count() == 0) {
    SoftPoint nothing;
    nothing.x.setZero(0);
    return certified(chosen, nothing, "no rows");
  }
  SoftPath path(chosen);
  path.follow(tolerance, [&](double objective, double bound) {
    return stop_({.objective = has_answer_ ? std::min(objective, best_.objective) : objective,
                  .dual_objective = has_answer_ ? std::max(bound, best_.dual_objective) : bound});
  });
  iterations_ += path.iterations();
  SoftPoint point = path.best();
  MarginSolution answer = certified(chosen, point, "interior point with slacks");
  if (stop_.stopped()) return answer;
  SoftFace(chosen, path).polish(point);
  MarginSolution sharp = certified(chosen, point, "Newton on the face with slacks");
  return is_better(sharp, answer) ? sharp : answer;
}

/// A last resort for small problems whose rows depend on each other or leave no room, or with penalties far from what
/// the margin needs.
void SoftSolver::solve_wide() {
  WideSoftSet solver;
  for (const double lift : kSoftLifts) {
    if (is_done() || stop_.stopped()) return;
    const bool solved = solver.solve(problem_, penalty_, best_.dual, std::ref(stop_), lift * norm_of(best_.W));
    iterations_ += solver.iterations();
    if (!solved) return;
    MarginSolution candidate;
    candidate.method = "active set with slacks in 512 bits";
    solver.write(candidate.W, candidate.dual);
    if (lift > 0) candidate.dual = best_.dual;  // W meets the rows after rounding; the multipliers stay
    certify(candidate);
    keep(candidate);
  }
}

/// The equations, and of each query the rows that are smallest at a first guess of W.
std::vector<Index> SoftSolver::first_rows() {
  Eigen::VectorXd guess = Eigen::VectorXd::Zero(problem_.rows());
  for (const MarginGroup& group : problem_.groups())
    guess.segment(group.first_row, group.rows).setConstant(1 / static_cast<double>(group.rows));
  const Eigen::VectorXd values = problem_.values(problem_.weigh(guess));
  std::vector<Index> rows, order;
  for (const MarginGroup& group : problem_.groups()) {
    order.clear();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (problem_.equal(k)) {
        rows.push_back(k);
      } else if (is_soft(problem_, k)) {
        order.push_back(k);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return values(a) < values(b); });
    order.resize(std::min<std::size_t>(order.size(), kFirst));
    rows.insert(rows.end(), order.begin(), order.end());
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// Adds the rows that W misses the most. False: it misses none that is not there.
bool SoftSolver::add_rows(const MarginSolution& latest, std::vector<Index>& rows) const {
  std::vector<Index> order, more;
  auto next = rows.begin();
  for (const MarginGroup& group : problem_.groups()) {
    double paid = 0;  // slack that the rows in play ask for
    order.clear();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      const bool here = next != rows.end() && *next == k;
      if (here) ++next;
      if (here && is_soft(problem_, k)) paid = std::max(paid, -latest.slack(k));
      if (!here) order.push_back(k);
    }
    std::erase_if(order, [&](Index k) { return !(latest.slack(k) < (is_soft(problem_, k) ? -paid : 0)); });
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return latest.slack(a) < latest.slack(b); });
    order.resize(std::min<std::size_t>(order.size(), kMore));
    more.insert(more.end(), order.begin(), order.end());
  }
  rows.insert(rows.end(), more.begin(), more.end());
  std::sort(rows.begin(), rows.end());
  return !more.empty();
}

void SoftSolver::solve(const Hard& hard, MarginSolution& answer) {
  require_sizes(problem_);
  const SingleThreadBlas single_thread;
  const bool small = problem_.rows() <= kWhole;
  const Index unknowns = problem_.d() * problem_.dz();
  if (!(small && take_hard(hard))) {
    std::vector<Index> rows;
    if (small) {
      for (Index k = 0; k < problem_.rows(); ++k) rows.push_back(k);
      keep(follow(rows, kEnough));
      if (WideSoftSet::suits(problem_)) solve_wide();
    } else {
      rows = first_rows();
      for (int round = 0; round < kRounds && !is_done() && !stop_.stopped(); ++round) {
        const auto count = static_cast<Index>(rows.size());
        const bool fits = std::min(count, unknowns) <= kMostSize && count <= kMostRows &&
                          (count <= unknowns || count * unknowns <= kMostNumbers);
        if (!fits) break;
        const MarginSolution latest = follow(rows, tolerance_ / 10);
        keep(latest);
        if (!is_done() && !add_rows(latest, rows)) break;
      }
    }
  }
  if (!is_done()) {  // W = 0 meets all rows that ask for 0, and may cost less
    MarginSolution nothing;
    nothing.method = "none: W is zero";
    nothing.dual = has_answer_ ? best_.dual : Eigen::VectorXd::Zero(problem_.rows());
    nothing.W = RowMatrix::Zero(problem_.d(), problem_.dz());
    certify(nothing);
    if (!has_answer_ || std::isnan(best_.gap) || nothing.objective < best_.objective) best_ = std::move(nothing);
  }
  answer = std::move(best_);
  answer.iterations = iterations_;
}

}  // namespace attsvm::internal
