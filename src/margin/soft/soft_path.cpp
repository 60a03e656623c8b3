#include "margin/soft/soft_path.h"

#include <cmath>

#include "base/limits.h"
#include "margin/predictor_corrector.h"

namespace attsvm::internal {
namespace {

// Set by hand.
constexpr int kMostIterations = 120, kIdle = 12;  // the latter without a better gap
constexpr double kInside = 0.995;                 // share of the way to the boundary
constexpr double kEquation = 1e-12;               // added to the diagonal of equations, which may depend on each other
constexpr double kSmallestStep = 1e-10;
constexpr int kRefinements = 2;

}  // namespace

void measure(const SoftRows& rows, const Eigen::VectorXd& values, SoftPoint& point) {
  const double square = point.x.dot(values);  // ‖W‖²
  point.objective = square / 2;
  point.bound = rows.b().dot(point.x) - square / 2;
  for (const SoftRows::Group& group : rows.groups()) {
    double needed = 0;
    for (Index k = group.first; k < group.first + group.count; ++k) {
      if (rows.e()(k) > 0) needed = std::max(needed, (rows.b()(k) - values(k)) / rows.e()(k));
    }
    if (needed > 0) point.objective += group.limit * needed;
  }
}

SoftPath::SoftPath(const SoftRows& rows) : rows_(rows), by_rows_(rows.count() <= rows.unknowns()) {
  if (by_rows_) {
    G_ = rows.gram();
  } else {
    A_ = rows.matrix();
  }
  const auto groups = static_cast<Index>(rows.groups().size());
  group_soft_.resize(groups);
  for (Index i = 0; i < groups; ++i)
    group_soft_(i) = std::isfinite(rows.groups()[static_cast<std::size_t>(i)].limit) ? 1 : 0;
  weight_.resize(rows.count());
  tau_.resize(groups);
  pairs_ = group_soft_.sum();
  for (Index k = 0; k < rows.count(); ++k) pairs_ += rows.equal(k) ? 0 : 1;
}

Eigen::VectorXd SoftPath::products(const Eigen::VectorXd& x) const {
  if (by_rows_) return G_ * x;
  return A_ * (A_.transpose() * x);
}

Eigen::MatrixXd SoftPath::gram_of(const std::vector<Index>& some) const {
  if (by_rows_) return G_(some, some);
  const Eigen::MatrixXd part = A_(some, Eigen::all);
  return part * part.transpose();
}

/// Multipliers of half the limit, or of what one row by itself would need if that is less.
void SoftPath::start() {
  const Index count = rows_.count(), groups = group_soft_.size();
  now_.x.setZero(count);
  now_.s.setZero(count);
  now_.y.setZero(groups);
  now_.left.setConstant(groups, kInfinity);
  double largest = 0;
  for (Index k = 0; k < count; ++k) largest = std::max(largest, rows_.b()(k));
  for (Index i = 0; i < groups; ++i) {
    const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
    for (Index k = group.first; k < group.first + group.count; ++k) {
      if (rows_.equal(k)) continue;
      const double alone = rows_.b()(k) > 0 ? rows_.b()(k) : largest;
      const double share =
          rows_.e()(k) > 0 ? group.limit / (2 * static_cast<double>(group.count) * rows_.e()(k)) : kInfinity;
      now_.x(k) = std::min(alone, share);
    }
    if (group_soft_(i) == 0) continue;
    now_.left(i) =
        group.limit - rows_.e().segment(group.first, group.count).dot(now_.x.segment(group.first, group.count));
    now_.y(i) = rows_.scale() / group.size;
  }
  values_ = products(now_.x);
  for (Index i = 0; i < groups; ++i) {
    const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
    for (Index k = group.first; k < group.first + group.count; ++k) {
      const double room = values_(k) + rows_.e()(k) * now_.y(i) - rows_.b()(k);
      if (!rows_.equal(k)) now_.s(k) = std::max({room, 0.1 * std::abs(rows_.b()(k)), 0.1 * largest});
    }
  }
}

/// In the rows: G + diag(s/x) + τ e eᵀ per group. In the unknowns: I + Aᵀ(diag(s/x) + τ e eᵀ)⁻¹A.
bool SoftPath::factor() {
  for (Index k = 0; k < rows_.count(); ++k) weight_(k) = rows_.equal(k) ? 1 / kEquation : now_.x(k) / now_.s(k);
  for (Index i = 0; i < tau_.size(); ++i) tau_(i) = group_soft_(i) != 0 ? now_.y(i) / now_.left(i) : 0;
  if (by_rows_) {
    Eigen::MatrixXd K = G_;
    K.diagonal() += weight_.cwiseInverse();
    for (Index i = 0; i < tau_.size(); ++i) {
      const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
      const auto e = rows_.e().segment(group.first, group.count);
      K.block(group.first, group.first, group.count, group.count) += tau_(i) * e * e.transpose();
    }
    factor_.compute(K);
    return factor_.info() == Eigen::Success;
  }
  // B = (I − β v vᵀ) D^½ A with v = D^½ e, whose Gram matrix is Aᵀ(D⁻¹ + τ e eᵀ)⁻¹A without a difference of large
  // numbers
  Eigen::MatrixXd B = weight_.cwiseSqrt().asDiagonal() * A_;
  for (Index i = 0; i < tau_.size(); ++i) {
    const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
    const Eigen::VectorXd v =
        weight_.segment(group.first, group.count).cwiseSqrt().cwiseProduct(rows_.e().segment(group.first, group.count));
    const double square = v.squaredNorm();
    if (square == 0 || tau_(i) == 0) continue;
    const double beta = (1 - std::sqrt(1 / (1 + tau_(i) * square))) / square;
    auto part = B.middleRows(group.first, group.count);
    const Eigen::RowVectorXd along = beta * (v.transpose() * part);
    part -= v * along;
  }
  Eigen::MatrixXd N = Eigen::MatrixXd::Identity(A_.cols(), A_.cols());
  N.selfadjointView<Eigen::Lower>().rankUpdate(B.transpose());
  factor_.compute(N.selfadjointView<Eigen::Lower>());
  return factor_.info() == Eigen::Success;
}

/// (diag(s/x) + τ e eᵀ)⁻¹ t
Eigen::VectorXd SoftPath::weighted(const Eigen::VectorXd& t) const {
  Eigen::VectorXd result = weight_.cwiseProduct(t);
  for (Index i = 0; i < tau_.size(); ++i) {
    const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
    const auto e = rows_.e().segment(group.first, group.count);
    const Eigen::VectorXd De = weight_.segment(group.first, group.count).cwiseProduct(e);
    const double square = De.dot(e);
    if (tau_(i) == 0 || square == 0) continue;
    auto part = result.segment(group.first, group.count);
    part -= De * (tau_(i) * e.dot(part) / (1 + tau_(i) * square));
  }
  return result;
}

Eigen::VectorXd SoftPath::solve_once(const Eigen::VectorXd& right) const {
  if (by_rows_) return factor_.solve(right);
  const Eigen::VectorXd t = weighted(right);
  return t - weighted(A_ * factor_.solve(A_.transpose() * t));
}

Eigen::VectorXd SoftPath::solve(const Eigen::VectorXd& right) const {
  Eigen::VectorXd x = solve_once(right);
  for (int round = 0; round < kRefinements; ++round) {
    Eigen::VectorXd rest = right - products(x) - x.cwiseQuotient(weight_);
    for (Index k = 0; k < rest.size(); ++k) {
      if (rows_.equal(k)) rest(k) += x(k) * kEquation;  // was only there to factorise
    }
    for (Index i = 0; i < tau_.size(); ++i) {
      const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
      const auto e = rows_.e().segment(group.first, group.count);
      rest.segment(group.first, group.count) -= e * (tau_(i) * e.dot(x.segment(group.first, group.count)));
    }
    x += solve_once(rest);
  }
  return x;
}

/// The step to x s = aim_x and y left = aim_y.
SoftPath::Step SoftPath::direction(const Eigen::VectorXd& aim_x, const Eigen::VectorXd& aim_y) const {
  const Index groups = tau_.size();
  Eigen::VectorXd right = -miss_x_;
  for (Index k = 0; k < right.size(); ++k) {
    if (!rows_.equal(k)) right(k) += (aim_x(k) - now_.x(k) * now_.s(k)) / now_.x(k);
  }
  for (Index i = 0; i < groups; ++i) {
    if (group_soft_(i) == 0) continue;
    const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
    const double shift = tau_(i) * miss_y_(i) + (aim_y(i) - now_.y(i) * now_.left(i)) / now_.left(i);
    right.segment(group.first, group.count) -= shift * rows_.e().segment(group.first, group.count);
  }
  Step step;
  step.x = solve(right);
  step.s.setZero(right.size());
  step.y.setZero(groups);
  step.left.setZero(groups);
  for (Index k = 0; k < right.size(); ++k) {
    if (!rows_.equal(k)) step.s(k) = (aim_x(k) - now_.x(k) * now_.s(k) - now_.s(k) * step.x(k)) / now_.x(k);
  }
  for (Index i = 0; i < groups; ++i) {
    if (group_soft_(i) == 0) continue;
    const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
    const double used = rows_.e().segment(group.first, group.count).dot(step.x.segment(group.first, group.count));
    step.left(i) = -miss_y_(i) - used;
    step.y(i) = (aim_y(i) - now_.y(i) * now_.left(i) - now_.y(i) * step.left(i)) / now_.left(i);
  }
  return step;
}

double SoftPath::reach(const Step& step) const {
  const auto bounded = [&](Index k) { return !rows_.equal(k); };
  const auto soft = [&](Index i) { return group_soft_(i) != 0; };
  const Index count = rows_.count(), groups = tau_.size();
  double most = step_to_boundary(0, count, now_.x, step.x, kInfinity, bounded);
  most = step_to_boundary(0, count, now_.s, step.s, most, bounded);
  most = step_to_boundary(0, groups, now_.y, step.y, most, soft);
  return step_to_boundary(0, groups, now_.left, step.left, most, soft);
}

double SoftPath::complementarity(const Step* step, double length) const {
  double sum = 0;
  for (Index k = 0; k < rows_.count(); ++k) {
    if (rows_.equal(k)) continue;
    sum += (now_.x(k) + (step ? length * step->x(k) : 0)) * (now_.s(k) + (step ? length * step->s(k) : 0));
  }
  for (Index i = 0; i < tau_.size(); ++i) {
    if (group_soft_(i) == 0) continue;
    sum += (now_.y(i) + (step ? length * step->y(i) : 0)) * (now_.left(i) + (step ? length * step->left(i) : 0));
  }
  return sum;
}

SolveOutcome SoftPath::follow(double tolerance, const std::function<bool(double, double)>& stop) {
  start();
  best_ = now_;
  best_.objective = kInfinity;
  best_.bound = 0;
  double best_gap = kInfinity;
  int idle = 0;
  for (iterations_ = 0; iterations_ < kMostIterations; ++iterations_) {
    values_ = products(now_.x);
    measure(rows_, values_, now_);
    miss_x_ = values_ - rows_.b() - now_.s;
    miss_y_.setZero(tau_.size());
    for (Index i = 0; i < tau_.size(); ++i) {
      if (group_soft_(i) == 0) continue;
      const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(i)];
      const auto e = rows_.e().segment(group.first, group.count);
      miss_x_.segment(group.first, group.count) += now_.y(i) * e;
      miss_y_(i) = e.dot(now_.x.segment(group.first, group.count)) + now_.left(i) - group.limit;
    }
    double off = 0;  // how far equations and rows ≥ 0 are from being met: the objective takes no account of it
    for (Index k = 0; k < rows_.count(); ++k) {
      if (rows_.e()(k) == 0) off = std::max(off, rows_.equal(k) ? std::abs(values_(k)) : -values_(k));
    }
    const double length = std::sqrt(std::max(0.0, now_.x.dot(values_)));
    const double gap = now_.gap() + (length > 0 ? off / length : 0);
    if (!std::isfinite(gap)) return SolveOutcome::stalled;
    if (gap < best_gap) {
      best_gap = gap;
      best_ = now_;
      idle = 0;
    } else if (++idle == kIdle) {
      return SolveOutcome::stalled;
    }
    if (stop(best_.objective, best_.bound)) return SolveOutcome::stopped;
    if (best_gap <= tolerance) return SolveOutcome::converged;
    if (!factor()) return SolveOutcome::stalled;

    const double before = complementarity(nullptr, 0);
    const Index count = rows_.count(), groups = tau_.size();
    const Step predictor = direction(Eigen::VectorXd::Zero(count), Eigen::VectorXd::Zero(groups));
    const double ahead = complementarity(&predictor, std::min(1.0, reach(predictor)));
    const double aim = before / pairs_ * std::pow(std::max(0.0, ahead / before), 3);
    const Step step = direction(Eigen::VectorXd::Constant(count, aim) - predictor.x.cwiseProduct(predictor.s),
                                Eigen::VectorXd::Constant(groups, aim) - predictor.y.cwiseProduct(predictor.left));
    const double taken = std::min(1.0, kInside * reach(step));
    if (!(taken > kSmallestStep)) return SolveOutcome::stalled;
    now_.x += taken * step.x;
    now_.s += taken * step.s;
    now_.y += taken * step.y;
    for (Index i = 0; i < groups; ++i) {
      if (group_soft_(i) != 0) now_.left(i) += taken * step.left(i);
    }
  }
  return SolveOutcome::stalled;
}

}  // namespace attsvm::internal
