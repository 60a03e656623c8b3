#include "margin/frobenius/interior_point.h"

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "base/limits.h"
#include "margin/predictor_corrector.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kStart = 10;  // values, slacks and multipliers start this far inside; 1 to 100 work as well
constexpr double kPredictorError = 1e-2, kCorrectorError = 1e-4;  // factors on the residual, by conjugate gradients
constexpr int kGradientLimit = 25;                                // about two steps are usual
constexpr Index kIterationLimit = 200;                            // 21 to 23 were measured
constexpr double kShortStep = 1e-2;
constexpr int kShortSteps = 8;          // after this many in a row it gives up
constexpr double kHopeless = 1e9;       // bound relative to the first from which the rows count as conflicting
constexpr double kInactive = 1e-3;      // λ_k‖a_k‖² below this times the slack: not a support row
constexpr double kMeetsNearly = 1e-11;  // violation of rows with b ≤ 0 that is rounding, relative to the largest b

double gap_of(double objective, double bound) { return objective < kInfinity ? 1 - bound / objective : 1; }

}  // namespace

/// What a pass over all rows finds at the current point.
struct InteriorPointSolver::Standing {
  double complementarity = 0, demand = 0;            // Σ s λ, Σ b λ
  double least_factor = 0, most_factor = kInfinity;  // multiples of W in this range meet every row
  double objective = kInfinity, bound = 0;

  void operator+=(const Standing& other) {
    complementarity += other.complementarity;
    demand += other.demand;
    least_factor = std::max(least_factor, other.least_factor);
    most_factor = std::min(most_factor, other.most_factor);
  }
};

InteriorPointSolver::InteriorPointSolver(const MarginProblem& problem, Threads& threads)
    : problem_(problem),
      equations_(problem, threads),
      products_(equations_.products()),
      normal_(problem, products_.square_sizes(), threads),
      loop_(products_.loop()) {
  const Index rows = problem.rows();
  rhs_.resize(rows);
  scale_ = 0;
  for (Index k = 0; k < rows; ++k) {
    if (problem.equal(k)) throw std::logic_error("the interior point method takes no equality rows");
    const bool live = products_.square_sizes()(k) > 0;
    if (!live && problem.rhs(k) > 0) impossible_ = true;
    rhs_(k) = live ? problem.rhs(k) : -1;
    live_ += live ? 1 : 0;
    scale_ = std::max(scale_, rhs_(k));
  }
  for (auto* numbers : {&value_, &slack_, &lambda_, &target_, &weight_, &slack_step_, &lambda_step_}) {
    numbers->setZero(rows);
  }
  best_W_ = W_ = Eigen::VectorXd::Zero(products_.unknowns());
  best_lambda_ = lambda_;
}

InteriorPointSolver::Outcome InteriorPointSolver::solve(double tolerance,
                                                        const std::function<bool(const SolveProgress&)>& stop) {
  iterations_ = 0;
  history_.clear();
  best_objective_ = kInfinity;
  best_bound_ = 0;
  if (impossible_) return Outcome::stalled;
  if (!start()) {  // W = 0 is the answer
    best_objective_ = 0;
    return Outcome::converged;
  }
  const Outcome outcome = iterate(tolerance, stop);
  if (outcome == Outcome::converged && iterations_ > 0) sharpen(tolerance);
  return outcome;
}

/// Starts in the direction of the mean row, with s and λ well inside. False: W = 0 meets every row.
bool InteriorPointSolver::start() {
  if (scale_ <= 0) return false;
  double total = 0;
  for (const MarginGroup& group : problem_.groups()) {
    target_.segment(group.first_row, group.rows).setConstant(1 / static_cast<double>(group.rows));
    total += 1;
  }
  products_.adjoint(target_, W_);
  const double square = W_.squaredNorm();  // = Σ target_k a_k·W
  if (square > 0) W_ *= kStart * scale_ * total / square;
  products_.values(W_, value_);
  double multiplier = W_.squaredNorm() / live_ / scale_;
  if (!(multiplier > 0)) multiplier = scale_ / products_.square_sizes().maxCoeff();
  loop_.each([&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      const bool live = products_.square_sizes()(k) > 0;
      slack_(k) = live ? std::max(value_(k) - rhs_(k), kStart * scale_) : 1;
      lambda_(k) = live ? kStart * multiplier : 0;
    }
  });
  products_.adjoint(lambda_, weighted_);
  fresh_ = true;
  return true;
}

InteriorPointSolver::Outcome InteriorPointSolver::iterate(double tolerance,
                                                          const std::function<bool(const SolveProgress&)>& stop) {
  const auto begin = std::chrono::steady_clock::now();
  for (int short_steps = 0;; ++iterations_) {
    Standing now = standing();
    if (!fresh_ && gap_of(now.objective, now.bound) <= 10 * tolerance) {  // recompute before judging the end
      refresh();
      now = standing();
    }
    keep_best(now);
    const double gap = gap_of(best_objective_, best_bound_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    history_.push_back({iterations_, best_objective_, best_bound_, seconds});
    if (gap <= tolerance) return Outcome::converged;
    if (stop && stop(history_.back())) return Outcome::stopped;
    if (iterations_ == kIterationLimit || !std::isfinite(now.complementarity)) return Outcome::stalled;
    if (best_bound_ > kHopeless * history_.front().dual_objective && iterations_ > 3) return Outcome::stalled;

    const double mean = now.complementarity / live_;
    aim_at_boundary();
    if (!normal_.factor(weight_)) return Outcome::stalled;
    Reach reach = direction(kPredictorError);
    const double left = complementarity_after({std::min(1.0, reach.primal), std::min(1.0, reach.dual)});
    aim_at_center(mean * std::pow(left / now.complementarity, 3));
    reach = direction(kCorrectorError);
    const double relative = now.complementarity / W_.squaredNorm();
    const double caution = std::clamp(1 - relative / 16, 0.9, 1 - 1e-6);
    const double step = std::min({1.0, caution * reach.primal, caution * reach.dual});
    if (!(step > 0)) return Outcome::stalled;
    advance(step);
    short_steps = step < kShortStep ? short_steps + 1 : 0;
    if (short_steps == kShortSteps) return Outcome::stalled;
  }
}

InteriorPointSolver::Standing InteriorPointSolver::standing() const {
  Standing now = loop_.total<Standing>([&](Index first, Index last, Standing& sum) {
    for (Index k = first; k < last; ++k) {
      const double b = rhs_(k), value = value_(k);
      sum.complementarity += slack_(k) * lambda_(k);
      sum.demand += b * lambda_(k);
      if (b > 0) {
        sum.least_factor = std::max(sum.least_factor, value > 0 ? b / value : kInfinity);
      } else if (value < b - kMeetsNearly * scale_ || (value < 0 && b < 0)) {
        sum.most_factor = std::min(sum.most_factor, b / value);
      }
    }
  });
  if (now.least_factor <= now.most_factor) now.objective = now.least_factor * W_.norm();
  now.bound = std::max(0.0, now.demand / weighted_.norm());
  return now;
}

void InteriorPointSolver::keep_best(const Standing& now) {
  if (now.objective < best_objective_) {
    best_objective_ = now.objective;
    best_W_ = now.least_factor * W_;
  }
  if (now.bound > best_bound_) {
    best_bound_ = now.bound;
    best_lambda_ = lambda_;
  }
}

/// Predictor: s λ = 0.
void InteriorPointSolver::aim_at_boundary() {
  loop_.each([&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      weight_(k) = lambda_(k) / slack_(k);
      target_(k) = -lambda_(k) - weight_(k) * (value_(k) - rhs_(k) - slack_(k));
    }
  });
}

/// Corrector: s λ = product, with the predictor's steps as the second-order term.
void InteriorPointSolver::aim_at_center(double product) {
  const Eigen::VectorXd& square_sizes = products_.square_sizes();
  loop_.each([&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      const double aim = square_sizes(k) > 0 ? product : 0;
      const double excess = value_(k) - rhs_(k) - slack_(k);
      target_(k) = (aim - slack_step_(k) * lambda_step_(k) - lambda_(k) * (slack_(k) + excess)) / slack_(k);
    }
  });
}

/// Solves for the steps: (I + Σ weight a aᵀ) ΔW = Σ (λ + target) a − W.
InteriorPointSolver::Reach InteriorPointSolver::direction(double tolerance) {
  products_.adjoint(target_, right_);
  right_ += weighted_ - W_;
  solve_normal(tolerance);
  const Eigen::VectorXd& value_step = equations_.values();
  return loop_.total<Reach>([&](Index first, Index last, Reach& reach) {
    for (Index k = first; k < last; ++k) {
      slack_step_(k) = value_step(k) + value_(k) - rhs_(k) - slack_(k);
      lambda_step_(k) = target_(k) - weight_(k) * value_step(k);
    }
    const auto always = [](Index) { return true; };
    reach.primal = step_to_boundary(first, last, slack_, slack_step_, reach.primal, always);
    reach.dual = step_to_boundary(first, last, lambda_, lambda_step_, reach.dual, always);
  });
}

void InteriorPointSolver::solve_normal(double tolerance) {
  equations_.solve(
      right_, weight_, 1, kGradientLimit, tolerance, [&](Eigen::VectorXd& x) { normal_.solve(x); },
      [] { return false; });
}

double InteriorPointSolver::complementarity_after(Reach reach) const {
  return loop_.total<double>([&](Index first, Index last, double& sum) {
    sum = complementarity(first, last, slack_, slack_step_, reach.primal, lambda_, lambda_step_, reach.dual);
  });
}

/// Takes the same step for W, s and λ, so that W − Σ λ a shrinks; updates the products by linearity.
void InteriorPointSolver::advance(double step) {
  const Eigen::VectorXd &W_step = equations_.x(), &value_step = equations_.values();
  const Eigen::VectorXd change = W_step - (weighted_ - W_) + equations_.residual();  // = Σ Δλ_k a_k
  weighted_ += step * change;
  W_ += step * W_step;
  loop_.each([&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      value_(k) += step * value_step(k);
      slack_(k) += step * slack_step_(k);
      lambda_(k) += step * lambda_step_(k);
    }
  });
  fresh_ = false;
}

void InteriorPointSolver::refresh() {
  products_.values(W_, value_);
  products_.adjoint(lambda_, weighted_);
  fresh_ = true;
}

double InteriorPointSolver::bound_of(const Eigen::VectorXd& lambda, const Eigen::VectorXd& weighted) const {
  const double demand = loop_.total<double>([&](Index first, Index last, double& sum) {
    sum += rhs_.segment(first, last - first).dot(lambda.segment(first, last - first));
  });
  return demand / weighted.norm();
}

/// Sets the multipliers of inactive rows to zero and corrects the others by a Newton step with the last factorisation.
/// Keeps the result if the gap stays within the tolerance.
void InteriorPointSolver::sharpen(double tolerance) {
  const Eigen::VectorXd& square_sizes = products_.square_sizes();
  loop_.each([&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      const bool active = lambda_(k) * square_sizes(k) > kInactive * slack_(k);
      weight_(k) = active ? lambda_(k) / slack_(k) : 0;
      if (!active) lambda_(k) = 0;
    }
  });
  products_.adjoint(lambda_, weighted_);
  right_ = W_ - weighted_;
  solve_normal(kCorrectorError);
  const Eigen::VectorXd& value_step = equations_.values();
  loop_.each([&](Index first, Index last) {
    for (Index k = first; k < last; ++k) lambda_(k) = std::max(0.0, lambda_(k) + weight_(k) * value_step(k));
  });
  products_.adjoint(lambda_, weighted_);
  const double bound = bound_of(lambda_, weighted_);
  if (bound >= best_bound_ || gap_of(best_objective_, bound) <= tolerance) {
    best_bound_ = bound;
    best_lambda_ = lambda_;
  }
}

void InteriorPointSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  const Eigen::VectorXd& best = best_objective_ < kInfinity ? best_W_ : W_;
  W = ConstRows(best.data(), problem_.d(), problem_.dz());
  lambda = best_lambda_;
}

}  // namespace attsvm::internal
