#pragma once

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm::internal {

/// Factorises an approximation of I + Σ w_k a_k a_kᵀ, a_k = δ_k ζ_kᵀ, for few unknowns and many rows.
///
/// The matrix is a sum of products (Σ_k w_k δ_k δ_kᵀ) ⊗ ζ_i ζ_iᵀ over the queries, whose two halves are symmetric. So
/// one matrix product of their upper triangles, over all queries, has every entry. Queries of little weight are
/// replaced by a multiple of I, and single precision is used while no weight is large; conjugate gradients with the
/// exact matrix remove the difference. The caller holds a SingleThreadBlas.
class NormalMatrix {
 public:
  /// square_sizes: ‖a_k‖²
  NormalMatrix(const MarginProblem& problem, const Eigen::VectorXd& square_sizes, Threads& threads);

  /// False: not positive definite to rounding.
  bool factor(const Eigen::VectorXd& weight);
  void solve(Eigen::VectorXd& x) const;

 private:
  template <class T>
  struct Halves {
    Buffer<T> left, right, product;
  };

  double select_heavy(const Eigen::VectorXd& weight);
  template <class T>
  void multiply_halves(const Eigen::VectorXd& weight, Halves<T>& halves);
  template <class T>
  void fill_halves(const Eigen::VectorXd& weight, Index first, Index count, Halves<T>& halves) const;
  template <class T>
  void fill_half(const Eigen::VectorXd& weight, const MarginGroup& group, double* work, T* left, T* right) const;
  template <class T>
  void assemble(const Halves<T>& halves, double diagonal);
  bool factorise();

  const MarginProblem& problem_;
  const Eigen::VectorXd& square_sizes_;
  Threads& threads_;
  Index d_, dz_, padded_, unknowns_, left_size_, right_size_, longest_ = 0;
  Buffer<double> trace_;         // of each query's part of the matrix
  std::vector<Index> order_;     // all queries by weight; then the heavy ones, ascending
  std::vector<Index> right_at_;  // (dz,dz): where the upper triangle holds an entry
  double largest_ = 0;           // largest trace
  Halves<float> single_;
  Halves<double> double_;
  Buffer<double> matrix_;
};

}  // namespace attsvm::internal
