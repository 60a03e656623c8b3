#pragma once

#include <utility>
#include <vector>

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm::internal {

/// Loops over the rows of a problem in chunks that depend on the number of rows alone.
class RowLoop {
 public:
  RowLoop(Index rows, Threads& threads) : rows_(rows), threads_(threads) {}

  /// Calls work(first, last) for every chunk.
  template <class Work>
  void each(Work&& work) const {
    threads_.for_each(chunks(), [&](Index chunk) { work(chunk * kChunk, std::min(rows_, (chunk + 1) * kChunk)); });
  }
  /// Calls work(first, last, sum) with an empty Sum for every chunk, and adds the sums in row order.
  template <class Sum, class Work>
  Sum total(Work&& work) const {
    std::vector<Sum> parts(static_cast<std::size_t>(chunks()));
    threads_.for_each(chunks(), [&](Index chunk) {
      Sum part{};
      work(chunk * kChunk, std::min(rows_, (chunk + 1) * kChunk), part);
      parts[static_cast<std::size_t>(chunk)] = part;
    });
    Sum sum{};
    for (const Sum& part : parts) sum += part;
    return sum;
  }

 private:
  static constexpr Index kChunk = 4096;
  Index chunks() const { return (rows_ + kChunk - 1) / kChunk; }

  Index rows_;
  Threads& threads_;
};

/// Products with all rows a_k = δ_k ζ_kᵀ of a problem, computed from the tokens. A matrix W is a row-major vector of
/// d·dz numbers here. The caller holds a SingleThreadBlas.
class RowProducts {
 public:
  RowProducts(const MarginProblem& problem, Threads& threads);

  Index unknowns() const { return d_ * dz_; }
  const RowLoop& loop() const { return loop_; }
  /// ‖a_k‖² = ‖δ_k‖² ‖ζ_k‖²
  const Eigen::VectorXd& square_sizes() const { return square_sizes_; }

  /// values_k = a_k · W
  void values(const Eigen::VectorXd& W, Eigen::VectorXd& values);
  /// sum = Σ c_k a_k
  void adjoint(const Eigen::VectorXd& c, Eigen::VectorXd& sum);
  /// values_k = a_k · W and sum = Σ weight_k values_k a_k in one pass over the tokens.
  void normal(const Eigen::VectorXd& W, const Eigen::VectorXd& weight, Eigen::VectorXd& values, Eigen::VectorXd& sum);

 private:
  // Consecutive rows that drop consecutive tokens.
  struct Run {
    Index row, token, count;
  };
  // The tokens that the rows of a query use: a range of its sequence, or a list if most of that range is not used.
  struct Tokens {
    const double* X;
    Index count, list;  // list: where its tokens are in listed_; −1: a range
    Index keep;         // position of the kept token among them
    Index first_run, last_run, first_row;
    double sign;
  };

  void describe(const MarginProblem& problem, const MarginGroup& group);
  void measure(const MarginProblem& problem, Index chunk);
  Index chunks() const { return (queries_ + chunk_ - 1) / chunk_; }
  template <class Work>
  void each_query(Index chunk, Work&& work);
  void spread(const Eigen::VectorXd& W, Index chunk);
  void evaluate(Index query, double* logits, double* values) const;
  template <class Expression>
  void combine(Index query, const Expression& c, double* coefficients);
  void collect(Eigen::VectorXd& sum);

  Threads& threads_;
  Index d_, dz_, queries_, chunk_, longest_ = 0;
  RowLoop loop_;
  std::vector<Tokens> tokens_;
  std::vector<Run> runs_;
  std::vector<Index> listed_;
  Buffer<double> zeta_;     // (queries,dz)
  Buffer<double> vectors_;  // (queries,d): W ζ_i in values(), Σ c_k δ_k in adjoint()
  Eigen::VectorXd square_sizes_;
};

}  // namespace attsvm::internal
