#include "margin/nuclear_solver.h"

#include <Eigen/SVD>
#include <cmath>

namespace attsvm {
namespace {

constexpr Index kMostRows = 4000;  // the Schur matrix has the square of this
constexpr Index kIterations = 100;
constexpr double kTryFace = 1e-2;      // gap from which Newton's method on the face is tried
constexpr double kRounding = 1e-11;    // gap beyond which the interior point method cannot see
constexpr double kNegligible = 1e-12;  // singular values of a matrix that is not of a known rank

}  // namespace

NuclearSolver::Outcome NuclearSolver::solve(const MarginProblem& problem, const MarginSolution& frobenius,
                                            double tolerance, const std::function<bool(const SolveProgress&)>& stop) {
  problem_ = &problem;
  iterations_ = 0;
  const double size = frobenius.W.stableNorm();
  const bool vectors = problem.d() == 1 || problem.dz() == 1 || problem.groups().size() == 1;
  if (size == 0 || vectors || problem.rows() > kMostRows) {  // the norms agree on matrices of rank one
    take_frobenius(problem, frobenius);
    return problem.rows() > kMostRows ? Outcome::stalled : Outcome::converged;
  }
  rows_.load(problem, size);
  rows_.weights_in(frobenius.W, W_);
  lambda_.grow(rows_.count());
  for (Index k = 0; k < rows_.count(); ++k) lambda_[k] = frobenius.dual(rows_.row(k)) * rows_.dual_in(k);
  interior_.start(rows_, W_, lambda_.data());
  for (;; ++iterations_) {
    const double scale = rows_.weight_scale();
    if (stop({.iteration = iterations_,
              .objective = interior_.objective() * scale,
              .dual_objective = interior_.bound() * scale})) {
      take_interior_point();
      return Outcome::stopped;
    }
    const double gap = interior_.relative_gap();
    if (gap < kTryFace) {
      interior_.weights(W_);
      if (face_.solve(rows_, W_, interior_.lambda(), balance())) {
        take_face();
        return Outcome::converged;
      }
    }
    if (gap < kRounding || iterations_ == kIterations || !interior_.step()) {
      take_interior_point();
      return gap < tolerance ? Outcome::converged : Outcome::stalled;
    }
  }
}

/// Multipliers per slack: where the interior point method's rows part into active ones and others.
double NuclearSolver::balance() const {
  double lambda = 0, slack = 0;
  for (Index k = 0; k < rows_.count(); ++k) {
    if (rows_.equal(k)) continue;
    lambda = std::max(lambda, interior_.lambda()[k]);
    slack = std::max(slack, interior_.slack()[k]);
  }
  return slack > 0 ? lambda / slack : 1;
}

void NuclearSolver::export_dual(const double* lambda) {
  dual_.setZero(problem_->rows());
  for (Index k = 0; k < rows_.count(); ++k) dual_(rows_.row(k)) = lambda[k] / rows_.dual_in(k);
}

void NuclearSolver::take_frobenius(const MarginProblem& problem, const MarginSolution& frobenius) {
  method_ = "rank one";
  dual_ = frobenius.dual;
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(frobenius.W, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::VectorXd& sigma = svd.singularValues();
  Index r = 0;
  while (r < sigma.size() && sigma(r) > kNegligible * sigma(0)) ++r;
  K_ = svd.matrixU().leftCols(r) * sigma.head(r).cwiseSqrt().asDiagonal();
  Q_ = svd.matrixV().leftCols(r) * sigma.head(r).cwiseSqrt().asDiagonal();
  if (problem.rows() > kMostRows) method_ = "Frobenius answer";
}

void NuclearSolver::take_face() {
  method_ = "interior point, Newton on the face";
  const Eigen::VectorXd root = (face_.sigma() * rows_.weight_scale()).cwiseSqrt();
  rows_.left_out(face_.U() * root.asDiagonal(), K_);
  rows_.right_out(face_.V() * root.asDiagonal(), Q_);
  export_dual(face_.lambda());
}

void NuclearSolver::take_interior_point() {
  method_ = "interior point";
  interior_.weights(W_);
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(W_, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::VectorXd& sigma = svd.singularValues();
  Index r = 0;
  while (r < sigma.size() && sigma(r) > kNegligible * sigma(0)) ++r;
  const Eigen::VectorXd root = (sigma.head(r) * rows_.weight_scale()).cwiseSqrt();
  rows_.left_out(svd.matrixU().leftCols(r) * root.asDiagonal(), K_);
  rows_.right_out(svd.matrixV().leftCols(r) * root.asDiagonal(), Q_);
  export_dual(interior_.lambda());
}

void NuclearSolver::write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const {
  K = K_;
  Q = Q_;
  lambda = dual_;
}

}  // namespace attsvm
