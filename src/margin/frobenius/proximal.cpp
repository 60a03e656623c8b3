#include "margin/frobenius/proximal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "margin/frobenius/blocked_cholesky.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kFirstSigma = 100, kWarmSigma = 1e4;  // 1/σ is added to a diagonal of ones; 10 to 1000 work as well
constexpr double kGrowth = 10;                         // of σ; 5 and 30 take as many Newton steps on heads
constexpr double kLastSigma = 1e13;
constexpr Index kStepLimit = 400;        // Newton steps; heads take 15 to 60
constexpr Index kFirstRows = 64;         // rows that may join per Newton step: these, or a quarter of the face
constexpr Index kMostFace = 3000;        // its factorisation takes 9e9 multiplications, it and products 144 MB
constexpr double kCaution = 0.5;         // share of the tolerance, because the certifier rounds differently
constexpr double kHopelessGrowth = 1e9;  // of the bound, from which the rows count as conflicting
constexpr double kAhead = 3;             // mean value of rows at the start, relative to their right-hand sides
constexpr double kSettled = 1e-2;        // change of W in a Newton step, relative to the gap, that ends a proximal step
constexpr double kRounding = 1e-11;      // the same relative to W, where the gap is smaller
constexpr double kNoise = 10;            // the same in units of σ times the rounding of a value, by which λ is off
constexpr double kLevel = 1e-8;          // slope that counts as none, relative to that at the start of a step
constexpr int kHalvings = 40;            // of the interval of the line search
constexpr Index kStrip = 64;             // rows of the Gram matrix that a thread computes at a time

}  // namespace

Index ProximalSolver::largest_face(const MarginProblem& problem) {
  return std::min(kMostFace, problem.d() * problem.dz());
}

ProximalSolver::ProximalSolver(const MarginProblem& problem, Threads& threads)
    : problem_(problem), threads_(threads), products_(problem, threads), d_(problem.d()), dz_(problem.dz()) {
  if (!problem.all_positive()) throw std::logic_error("proximal steps take rows with b > 0 alone");
  const Index rows = problem.rows();
  size_ = products_.square_sizes().cwiseSqrt();
  impossible_ = !(size_.minCoeff() > 0);
  if (impossible_) return;
  rhs_.resize(rows);
  for (Index k = 0; k < rows; ++k) rhs_(k) = problem.rhs(k) / size_(k);
  scale_ = rhs_.maxCoeff();
  rhs_ /= scale_;
}

ProximalSolver::Outcome ProximalSolver::solve(double tolerance, const Eigen::VectorXd* warm_dual,
                                              const std::function<bool(const SolveProgress&)>& stop) {
  const auto begin = std::chrono::steady_clock::now();
  iterations_ = 0;
  history_.clear();
  best_objective_ = kInfinity;
  best_bound_ = 0;
  W_ = best_W_ = Eigen::VectorXd::Zero(d_ * dz_);
  best_lambda_ = anchor_ = Eigen::VectorXd::Zero(problem_.rows());
  if (impossible_) return Outcome::stalled;
  member_.assign(static_cast<std::size_t>(problem_.rows()), 0);
  members_.clear();
  face_.clear();
  if (warm_dual == nullptr || !start_warm(*warm_dual)) start_cold();
  double first_bound = 0;  // that is not zero
  for (; sigma_ <= kLastSigma; sigma_ *= kGrowth) {
    bool exact = false;  // the last step was a full one: if its face stays, it reached the minimum
    for (Index step = 0;; ++step) {
      missing_ = rhs_ - value_ + anchor_ / sigma_;
      const bool joined = recruit();
      if (!choose_face(step == 0) || iterations_ == kStepLimit) return Outcome::stalled;
      if (exact && !joined && face_ == last_face_) break;
      gather_face();
      if (!solve_face()) return Outcome::stalled;
      judge_dual();
      const bool settled =
          W_step_.norm() <= std::max({kSettled * gap(), kRounding, kNoise * kEpsilon * sigma_}) * newton_W_.norm();
      const double length = settled ? 1 : step_length();
      exact = length == 1;
      if (exact) {
        W_.swap(newton_W_);
        value_.swap(newton_value_);
      } else {
        W_ += length * W_step_;
        value_ += length * value_step_;
      }
      judge_primal();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      history_.push_back({++iterations_, best_objective_ * scale_, best_bound_ * scale_, seconds.count()});
      if (gap() <= kCaution * tolerance) return Outcome::converged;
      if (stop && stop(history_.back())) return Outcome::stopped;
      if (first_bound == 0) first_bound = best_bound_;
      if (best_bound_ > kHopelessGrowth * first_bound) return Outcome::stalled;
      if (settled && !joined) break;
    }
    anchor_.setZero();
    for (std::size_t j = 0; j < face_.size(); ++j)
      anchor_(face_[j]) = std::max(0.0, multiplier_(static_cast<Index>(j)));
  }
  return Outcome::stalled;
}

/// Starts in the direction of the mean row.
void ProximalSolver::start_cold() {
  sigma_ = kFirstSigma;
  Eigen::VectorXd share(problem_.rows());
  for (const MarginGroup& group : problem_.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k)
      share(k) = 1 / (static_cast<double>(group.rows) * size_(k));
  }
  products_.adjoint(share, W_);
  measure(W_, value_);
  const double mean = value_.mean();
  const double factor = mean > 0 ? kAhead * rhs_.mean() / mean : 0;
  W_ *= factor;
  value_ *= factor;
}

/// False: these multipliers say nothing.
bool ProximalSolver::start_warm(const Eigen::VectorXd& dual) {
  if (dual.size() != problem_.rows()) return false;
  products_.adjoint(dual, W_);
  anchor_ = dual.cwiseProduct(size_).cwiseMax(0);
  const double square = W_.squaredNorm(), demand = anchor_.dot(rhs_);
  const double factor = demand / square;  // of all multiples, this one has the largest dual value
  if (!(demand > 0 && std::isfinite(factor))) {
    anchor_.setZero();
    return false;
  }
  anchor_ *= factor;
  W_ *= factor;
  measure(W_, value_);
  sigma_ = kWarmSigma;
  for (Index k = 0; k < anchor_.size(); ++k) {
    if (anchor_(k) > 0) {
      member_[static_cast<std::size_t>(k)] = 1;
      members_.push_back(k);
    }
  }
  return true;
}

void ProximalSolver::measure(const Eigen::VectorXd& W, Eigen::VectorXd& value) {
  value.resize(problem_.rows());
  products_.values(W, value);
  value.array() /= size_.array();
}

/// Lets the most violated row of each query join, and of these the worst. False: no row is violated but members.
bool ProximalSolver::recruit() {
  candidates_.clear();
  for (const MarginGroup& group : problem_.groups()) {
    Index worst = -1;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (missing_(k) > 0 && member_[static_cast<std::size_t>(k)] == 0 && (worst < 0 || missing_(k) > missing_(worst)))
        worst = k;
    }
    if (worst >= 0) candidates_.push_back(worst);
  }
  const auto most = std::max<std::size_t>(static_cast<std::size_t>(kFirstRows), face_.size() / 4);
  if (candidates_.size() > most) {
    const auto worse = [&](Index a, Index b) { return missing_(a) != missing_(b) ? missing_(a) > missing_(b) : a < b; };
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(most), candidates_.end(),
                     worse);
    candidates_.resize(most);
  }
  for (const Index k : candidates_) member_[static_cast<std::size_t>(k)] = 1;
  members_.insert(members_.end(), candidates_.begin(), candidates_.end());
  std::sort(members_.begin(), members_.end());
  return !candidates_.empty();
}

/// The members that are violated; in the first Newton step also those with a multiplier, of which few will lose it.
/// False: too many.
bool ProximalSolver::choose_face(bool with_anchor) {
  last_face_.swap(face_);
  face_.clear();
  for (const Index k : members_) {
    if (missing_(k) > 0 || (with_anchor && anchor_(k) > 0)) face_.push_back(k);
  }
  return static_cast<Index>(face_.size()) <= largest_face(problem_);
}

/// Unit vectors δ and ζ of the rows of the face.
void ProximalSolver::gather_face() {
  const auto count = static_cast<Index>(face_.size());
  deltas_.grow(count * d_);
  zetas_.grow(count * dz_);
  weighted_.grow(count * dz_);
  auto group = problem_.groups().begin();
  for (Index j = 0; j < count; ++j) {
    const Index k = face_[static_cast<std::size_t>(j)];
    while (k >= group->first_row + group->rows) ++group;
    const double length = ConstVector(group->z, dz_).norm();
    Eigen::Map<Eigen::VectorXd> delta(deltas_.data() + j * d_, d_), zeta(zetas_.data() + j * dz_, dz_);
    problem_.delta(*group, k, delta.data());
    delta *= length / size_(k);
    zeta = ConstVector(group->z, dz_) / length;
  }
}

/// W = Σ λ_k a_k over the face.
void ProximalSolver::weigh_face(const Eigen::VectorXd& multipliers, Eigen::VectorXd& W) {
  const auto count = static_cast<Index>(face_.size());
  for (Index j = 0; j < count; ++j) {
    for (Index b = 0; b < dz_; ++b) weighted_[j * dz_ + b] = multipliers(j) * zetas_[j * dz_ + b];
  }
  W.resize(d_ * dz_);
  gemm(true, false, d_, dz_, count, 1, deltas_.data(), d_, weighted_.data(), dz_, 0, W.data(), dz_);
}

/// Newton's step: (K + I/σ) λ = b + anchor/σ on the face, W = Σ λ a. False: not positive definite to rounding.
bool ProximalSolver::solve_face() {
  const auto count = static_cast<Index>(face_.size());
  factor_.grow(count * count);
  products_of_zetas_.grow(count * count);
  threads_.for_each((count + kStrip - 1) / kStrip, [&](Index strip) {  // lower triangle; the longest strips first
    const Index first = count - std::min(count, (strip + 1) * kStrip), last = count - strip * kStrip;
    double *K = factor_.data() + first * count, *products = products_of_zetas_.data() + first * count;
    gemm(false, true, last - first, last, d_, 1, deltas_.data() + first * d_, d_, deltas_.data(), d_, 0, K, count);
    gemm(false, true, last - first, last, dz_, 1, zetas_.data() + first * dz_, dz_, zetas_.data(), dz_, 0, products,
         count);
    for (Index j = first; j < last; ++j) {
      for (Index l = 0; l < last; ++l) K[(j - first) * count + l] *= products[(j - first) * count + l];
    }
  });
  multiplier_.resize(count);
  for (Index j = 0; j < count; ++j) {
    const Index k = face_[static_cast<std::size_t>(j)];
    factor_[j * (count + 1)] += 1 / sigma_;
    multiplier_(j) = rhs_(k) + anchor_(k) / sigma_;
  }
  if (count > 0) {
    if (!blocked_cholesky(count, factor_.data(), threads_)) return false;
    solve_lower(false, count, factor_.data(), count, multiplier_.data());
    solve_lower(true, count, factor_.data(), count, multiplier_.data());
  }
  weigh_face(multiplier_, newton_W_);
  measure(newton_W_, newton_value_);
  W_step_ = newton_W_ - W_;
  value_step_ = newton_value_ - value_;
  return true;
}

/// Where the function is smallest on the way to Newton's point.
double ProximalSolver::step_length() const {
  const double along = W_.dot(W_step_), square = W_step_.squaredNorm();
  const auto slope = [&](double length) {
    double sum = 0;
    for (const Index k : members_) sum += std::max(0.0, missing_(k) - length * value_step_(k)) * value_step_(k);
    return along + length * square - sigma_ * sum;
  };
  if (slope(1) <= kLevel * std::abs(slope(0))) return 1;
  double low = 0, high = 1;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = 0.5 * (low + high);
    (slope(middle) > 0 ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

void ProximalSolver::judge_dual() {
  clipped_ = multiplier_.cwiseMax(0);
  Eigen::VectorXd sum;
  weigh_face(clipped_, sum);
  double demand = 0;
  for (std::size_t j = 0; j < face_.size(); ++j) demand += rhs_(face_[j]) * clipped_(static_cast<Index>(j));
  const double bound = demand / sum.norm();
  if (!(bound > best_bound_)) return;
  best_bound_ = bound;
  best_lambda_.setZero();
  for (std::size_t j = 0; j < face_.size(); ++j) best_lambda_(face_[j]) = clipped_(static_cast<Index>(j));
}

void ProximalSolver::judge_primal() {
  if (!(value_.minCoeff() > 0)) return;
  const double stretch = (rhs_.array() / value_.array()).maxCoeff(), objective = stretch * W_.norm();
  if (!(objective < best_objective_)) return;
  best_objective_ = objective;
  best_W_ = stretch * W_;
}

void ProximalSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = scale_ * ConstRows((best_objective_ < kInfinity ? best_W_ : W_).data(), d_, dz_);
  lambda = best_lambda_;
  if (!impossible_) lambda.array() /= size_.array();
}

}  // namespace attsvm::internal
