#pragma once

#include "base/conjugate_gradients.h"
#include "margin/rows/row_products.h"

namespace attsvm::internal {

/// Solves (shift I + Σ w_k a_k a_kᵀ) x = right by conjugate gradients, with products computed from the tokens. The
/// caller holds a SingleThreadBlas.
class NormalEquations {
 public:
  NormalEquations(const MarginProblem& problem, Threads& threads) : products_(problem, threads) {
    for (auto* numbers : {&values_, &search_values_}) numbers->setZero(problem.rows());
  }

  RowProducts& products() { return products_; }
  const RowProducts& products() const { return products_; }

  /// precondition(x): x ← M⁻¹ x. stop(): asked between products; true ends it. Returns the number of steps taken.
  template <class Precondition, class Stop>
  Index solve(const Eigen::VectorXd& right, const Eigen::VectorXd& weight, double shift, Index limit, double tolerance,
              const Precondition& precondition, const Stop& stop) {
    residual_ = right;
    x_.setZero(right.size());
    values_.setZero();
    search_.setZero(right.size());
    const auto move = [&](double length) {
      if (length != 0) {
        x_ += length * search_;
        residual_ -= length * product_;
        add(length, search_values_, values_);
      }
      preconditioned_ = residual_;
      precondition(preconditioned_);
      return residual_.dot(preconditioned_);
    };
    const auto turn = [&](double share) {
      if (share != 0 && stop()) return 0.0;
      search_ = preconditioned_ + share * search_;
      products_.normal(search_, weight, search_values_, product_);
      if (shift != 0) product_ += shift * search_;
      return search_.dot(product_);
    };
    return conjugate_gradients(limit, tolerance, move, turn);
  }
  const Eigen::VectorXd& x() const { return x_; }
  const Eigen::VectorXd& values() const { return values_; }      ///< a_k · x
  const Eigen::VectorXd& residual() const { return residual_; }  ///< what is left of the right-hand side

  /// to += length · from, for one number per row.
  void add(double length, const Eigen::VectorXd& from, Eigen::VectorXd& to) const {
    products_.loop().each([&](Index first, Index last) {
      to.segment(first, last - first) += length * from.segment(first, last - first);
    });
  }

 private:
  RowProducts products_;
  Eigen::VectorXd x_, values_, residual_, preconditioned_, search_, search_values_, product_;
};

}  // namespace attsvm::internal
