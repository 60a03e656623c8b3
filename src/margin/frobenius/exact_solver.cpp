#include "margin/frobenius/exact_solver.h"

#include <cmath>
#include <limits>

#include "base/conjugate_gradients.h"
#include "base/kernels/gram.h"
#include "base/limits.h"
#include "base/refuse.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kWholeGram = 128;                    // rows up to which the Gram matrix of all rows is worth its cost
constexpr Index kFirstSweeps = 4, kSweepLimit = 60;  // Gauss–Seidel on the whole Gram matrix: before the support counts
constexpr Index kEpochLimit = 40, kPasses = 4;       // the same query by query: epochs, and passes over a query in each
constexpr double kLoose = 64;           // factor on the tolerance if rows are judged by the Gram matrix instead of W
constexpr int kTries = 4;               // sets that block pivoting may try without fewer wrong rows
constexpr Index kDenseLimit = 400;      // support rows up to which a factorisation is faster than conjugate gradients
constexpr Index kIterationLimit = 300;  // conjugate gradients that take more steps are replaced by a factorisation
constexpr double kRoughFace = 1e-3, kFineFace = 1e-13;  // their accuracy while the set changes, and at the end

}  // namespace

double ExactSolver::weight_norm() const { return std::sqrt(dot(W_.data(), W_.data(), rows_.entries())); }

/// Builds the unit rows. False: a zero row asks for more than 0 (conflict_row_).
bool ExactSolver::normalize(const MarginProblem& problem, double lift) {
  problem_ = &problem;
  const Index rows = problem.rows(), d = problem.d(), dz = problem.dz();
  const auto groups = static_cast<Index>(problem.groups().size());
  rows_.shape(rows, groups, d, dz);
  for (auto* buffer : {&rhs_, &low_, &size_, &x_, &set_x_, &point_, &step_, &value_}) buffer->grow(pad4(rows));
  row_.grow(rows);
  query_.grow(rows);
  free_.grow(rows);
  W_.grow(rows_.entries());
  live_ = 0;
  scale_ = 0;
  conflict_row_ = -1;
  for (Index i = 0; i < groups; ++i) {
    const MarginGroup& group = problem.groups()[static_cast<std::size_t>(i)];
    constexpr Index kNone = -1;
    double zeta_norm = 0;
    unit_rows(group.z, dz, 0, 1, &kNone, 1, rows_.zeta(i), &zeta_norm);
    const Index first = live_;
    unit_rows(group.X, d, group.keep, group.sign, problem.drops(group).data(), group.rows, rows_.delta(first),
              value_.data());
    for (Index r = 0; r < group.rows; ++r) {
      const Index k = group.first_row + r;
      const double delta_norm = value_[r];
      if (delta_norm == 0 || zeta_norm == 0) {  // its value is 0 for every W
        if (problem.rhs(k) > 0 || (problem.equal(k) && problem.rhs(k) != 0)) {
          conflict_row_ = k;
          return false;
        }
        continue;
      }
      const double row_size = delta_norm * zeta_norm;
      if (!std::isfinite(row_size) || row_size < std::numeric_limits<double>::min()) {
        refuse(
            "query {}: its row against token {} has size {} x {}, which double cannot hold; rescale tokens or queries",
            group.query, problem.drop_token(group, k), delta_norm, zeta_norm);
      }
      if (live_ < first + r) std::copy_n(rows_.delta(first + r), rows_.dp(), rows_.delta(live_));
      row_[live_] = k;
      query_[live_] = i;
      free_[live_] = problem.equal(k) ? 1 : 0;
      low_[live_] = problem.equal(k) ? -kInfinity : 0;
      size_[live_] = row_size;
      rhs_[live_] = problem.rhs(k) / row_size + (problem.equal(k) ? 0 : lift);
      scale_ = std::max(scale_, std::abs(rhs_[live_]));
      ++live_;
    }
  }
  scale_ = scale_ > 0 ? std::exp2(-std::ilogb(scale_)) : 1;
  for (Index k = 0; k < live_; ++k) rhs_[k] *= scale_;
  rows_.group(query_.data(), live_, live_ <= kWholeGram ? UnitRows::Gram::whole : UnitRows::Gram::blocks);
  return true;
}

ExactSolver::Outcome ExactSolver::solve(const MarginProblem& problem, const IndexList& support,
                                        const std::function<bool()>& stop, double lift) {
  iterations_ = 0;
  robust_ = false;
  set_.clear();
  if (!normalize(problem, lift)) return Outcome::infeasible;
  x_.fill(live_, 0.0);
  for (Index k = 0, next = 0; k < live_; ++k) {
    while (next < support.size() && support[next] < row_[k]) ++next;
    if (free_[k] != 0 || (next < support.size() && support[next] == row_[k])) set_.push(k);
  }
  const bool warm = support.size() > 0;
  if (!warm && guess_active_set(stop)) return Outcome::stopped;
  if (solve_face(stop) || (rows_.has_whole_gram() && walk_to_face(stop))) return Outcome::optimal;
  return active_set(stop);
}

/// Runs Gauss–Seidel on the dual until the support hardly changes. True: asked to stop.
bool ExactSolver::guess_active_set(const std::function<bool()>& stop) {
  if (rows_.has_whole_gram()) return guess_by_gram(stop);
  const RowBlocks rows = rows_.view();
  W_.fill(rows_.entries(), 0.0);
  for (Index count = 1; count <= kEpochLimit; ++count) {
    const Index changed = epoch(rows, rhs_.data(), low_.data(), kPasses, x_.data(), rows_.work(), W_.data());
    if (count > 2 && changed <= 1) break;
    if (stop()) return true;
  }
  set_.clear();
  for (Index k = 0; k < live_; ++k) {
    if (free_[k] != 0 || x_[k] > 0) set_.push(k);
  }
  return false;
}

/// The same on the whole Gram matrix, over-relaxed.
bool ExactSolver::guess_by_gram(const std::function<bool()>& stop) {
  residual_.fill(rows_.whole_ld(), 0.0);
  std::copy_n(rhs_.data(), live_, residual_.data());
  for (Index count = 1; count <= kSweepLimit; ++count) {
    const Index changed =
        gauss_seidel(rows_.whole_gram(), rows_.whole_ld(), live_, low_.data(), x_.data(), residual_.data());
    if (count > kFirstSweeps && changed == 0) break;
    if (stop()) {
      weigh(rows_.view(), x_.data(), rows_.work(), W_.data());  // W was not needed before
      return true;
    }
  }
  set_.clear();
  for (Index k = 0; k < live_; ++k) {
    if (free_[k] != 0 || x_[k] + residual_[k] > 0) set_.push(k);  // rows that the next sweep would make active
  }
  return false;
}

/// Block pivoting: solves with the rows of the set as equations, then removes rows with negative multipliers and adds
/// violated rows. False: it does not converge, or rows of the set depend on each other.
bool ExactSolver::solve_face(const std::function<bool()>& stop) {
  double face_tolerance = kRoughFace;
  Index best = live_ + 1;
  for (int patience = kTries;;) {
    ++iterations_;
    const Index size = set_.size();
    if (size > rows_.d() * rows_.dz() || stop()) return false;
    Index wrong = 0;
    bool final = true;
    if (size <= kDenseLimit || !solve_face_iteratively(face_tolerance)) {
      factor_face();
      if (rows_.has_whole_gram()) wrong = judge(value_by_gram());
      if (wrong == 0) {
        if (!refine_face()) return false;
        wrong = judge(kMeet * weight_norm());
      }
    } else {
      evaluate(rows_.view(), W_.data(), rows_.work(), value_.data());
      wrong = judge(face_tolerance * weight_norm());
      final = face_tolerance <= kFineFace;
    }
    if (wrong == 0) {
      if (final) return true;
      face_tolerance = kFineFace;
      best = live_ + 1;
    } else if (wrong < best) {
      best = wrong;
      patience = kTries;
    } else if (--patience == 0) {
      return false;
    }
    set_.swap(next_);
  }
}

/// How many rows are wrongly in or out of the set; next_ becomes the set with these moved.
Index ExactSolver::judge(double tolerance) {
  Index wrong = 0, member = 0;
  next_.clear();
  for (Index k = 0; k < live_; ++k) {
    const bool in = set_.meets(k, member);
    const bool carries = in && x_[k] != 0;  // a dependent row of the set has no multiplier
    const bool bad = carries ? free_[k] == 0 && x_[k] < 0 : rhs_[k] - value_[k] > tolerance;
    if (bad) ++wrong;
    if (carries ? !bad : in || bad) {
      next_.push(k);
    } else {
      x_[k] = 0;
    }
  }
  return wrong;
}

/// The values of all rows by the Gram matrix instead of W. Returns the tolerance to judge them with, for sets that are
/// clearly wrong.
double ExactSolver::value_by_gram() {
  combine_at(rows_.whole_gram(), rows_.whole_ld(), set_.begin(), set_.size(), set_x_.data(), value_.data());
  double square = 0;
  for (Index j = 0; j < set_.size(); ++j) square += set_x_[j] * value_[set_[j]];
  return kLoose * kMeet * std::sqrt(std::max(square, 0.0));
}

/// Solves for x with the Gram matrix of the set.
void ExactSolver::factor_face() {
  const Index size = set_.size(), ld = pad4(size + 1);
  L_.grow(ld * pad4(size));
  rows_.gram_of(set_.begin(), size, L_.data(), ld);
  for (Index j = 0; j < size; ++j) {
    double* column = L_.data() + j * ld;
    column[size] = rhs_[set_[j]];
    std::fill(column + size + 1, column + ld, 0.0);
  }
  factor_solve(L_.data(), ld, size, kFastPivot, set_x_.data());
  x_.fill(live_, 0.0);
  for (Index j = 0; j < size; ++j) x_[set_[j]] = set_x_[j];
}

/// Computes W from x and refines both until the rows of the set are met to rounding. False: that fails.
bool ExactSolver::refine_face() {
  const RowBlocks rows = rows_.view();
  const Index size = set_.size(), ld = pad4(size + 1);
  for (int pass = 0; pass < 4; ++pass) {
    weigh(rows, x_.data(), rows_.work(), W_.data());
    evaluate(rows, W_.data(), rows_.work(), value_.data());
    double worst = 0;
    for (Index j = 0; j < size; ++j) {
      const Index k = set_[j];
      set_x_[j] = rhs_[k] - value_[k];
      if (std::isfinite(L_[j * (ld + 1)]) || free_[k] != 0) worst = std::max(worst, std::abs(set_x_[j]));
    }
    if (worst <= kMeet * weight_norm()) return true;
    solve_again(L_.data(), ld, size, set_x_.data());
    for (Index j = 0; j < size; ++j) x_[set_[j]] += set_x_[j];
  }
  return false;
}

/// The same for large sets: conjugate gradients from the present x, preconditioned by the Gram matrix of each query.
bool ExactSolver::solve_face_iteratively(double tolerance) {
  const Index size = set_.size(), groups = static_cast<Index>(problem_->groups().size());
  face_.shape(size, groups, rows_.d(), rows_.dz());
  for (Index i = 0; i < groups; ++i) std::copy_n(rows_.zeta(i), rows_.zp(), face_.zeta(i));
  local_.grow(size);
  for (auto* buffer : {&residual_, &direction_, &preconditioned_, &product_}) buffer->grow(size);
  step_W_.grow(rows_.entries());
  for (Index j = 0; j < size; ++j) {
    std::copy_n(rows_.delta(set_[j]), rows_.dp(), face_.delta(j));
    local_[j] = query_[set_[j]];
    set_x_[j] = x_[set_[j]];
  }
  face_.group(local_.data(), size, UnitRows::Gram::blocks);
  const auto& blocks = face_.blocks();
  const auto block_count = static_cast<Index>(blocks.size());
  const auto block = [&](Index b) -> const RowBlock& { return blocks[static_cast<std::size_t>(b)]; };
  factor_at_.grow(block_count + 1);
  factor_at_[0] = 0;
  for (Index b = 0; b < block_count; ++b)
    factor_at_[b + 1] = factor_at_[b] + pad4(block(b).count + 1) * pad4(block(b).count);
  L_.grow(factor_at_[block_count]);
  for (Index b = 0; b < block_count; ++b) {
    const Index count = block(b).count, ld = pad4(count + 1);
    double* factor = L_.data() + factor_at_[b];
    for (Index k = 0; k < count; ++k) {
      std::copy_n(face_.gram(block(b)) + k * pad4(count), count, factor + k * ld);
      std::fill(factor + k * ld + count, factor + (k + 1) * ld, 0.0);
    }
    factor_solve(factor, ld, count, kFastPivot, product_.data());
  }
  const RowBlocks face = face_.view();
  weigh(face, set_x_.data(), face_.work(), W_.data());
  evaluate(face, W_.data(), face_.work(), product_.data());
  for (Index j = 0; j < size; ++j) residual_[j] = rhs_[set_[j]] - product_[j];
  direction_.fill(size, 0.0);
  bool met = false;
  const auto move = [&](double length) {
    if (length != 0) {
      axpy(length, step_W_.data(), W_.data(), rows_.entries());
      for (Index j = 0; j < size; ++j) {
        set_x_[j] += length * direction_[j];
        residual_[j] -= length * product_[j];
      }
    }
    double worst = 0, along = 0;
    for (Index j = 0; j < size; ++j) {
      worst = std::max(worst, std::abs(residual_[j]));
      preconditioned_[j] = residual_[j];
    }
    met = worst <= tolerance * weight_norm();
    if (met) return 0.0;
    for (Index b = 0; b < block_count; ++b) {
      solve_again(L_.data() + factor_at_[b], pad4(block(b).count + 1), block(b).count,
                  preconditioned_.data() + block(b).first);
    }
    for (Index j = 0; j < size; ++j) along += residual_[j] * preconditioned_[j];
    return along;
  };
  const auto turn = [&](double share) {
    double curvature = 0;
    for (Index j = 0; j < size; ++j) direction_[j] = preconditioned_[j] + share * direction_[j];
    weigh(face, direction_.data(), face_.work(), step_W_.data());
    evaluate(face, step_W_.data(), face_.work(), product_.data());
    for (Index j = 0; j < size; ++j) curvature += direction_[j] * product_[j];
    return curvature;
  };
  conjugate_gradients(kIterationLimit, 0.0, move, turn);
  if (!met) return false;
  x_.fill(live_, 0.0);
  for (Index j = 0; j < size; ++j) x_[set_[j]] = set_x_[j];
  return true;
}

void ExactSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W.resize(problem_->d(), problem_->dz());
  lambda.setZero(problem_->rows());
  if (conflict_row_ >= 0) {
    W.setZero();
    lambda(conflict_row_) = 1 / problem_->rhs(conflict_row_);
    return;
  }
  for (Index j = 0; j < W.cols(); ++j) {
    for (Index i = 0; i < W.rows(); ++i) W(i, j) = W_[j * rows_.dp() + i] * (1 / scale_);
  }
  for (Index k = 0; k < live_; ++k) lambda(row_[k]) = x_[k] / size_[k];
}

}  // namespace attsvm::internal
