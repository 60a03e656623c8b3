#pragma once

#include <functional>
#include <vector>

#include "attsvm/margin.h"
#include "attsvm/threads.h"
#include "base/kernels/stream.h"
#include "base/storage.h"
#include "margin/rows/row_sums.h"

namespace attsvm::internal {

/// A margin problem as the streaming solvers read it. It copies the queries and scales tokens, queries and right-hand
/// sides to size one by powers of two, so that single precision neither overflows nor underflows. Loops run over blocks
/// of queries that depend on the sizes alone, and sums are those of RowSums, so that any number of threads and
/// processes gives the same bytes.
class ScaledProblem {
 public:
  /// std::logic_error for a value problem, whose rows drop no token. `shared` as in RowSums.
  ScaledProblem(const MarginProblem& problem, Threads& threads, const SharedRows* shared = nullptr);

  const MarginProblem& problem() const { return *problem_; }
  Threads& threads() const { return *threads_; }
  const RowSums& sums() const { return sums_; }
  Index d() const { return problem_->d(); }
  Index dz() const { return problem_->dz(); }
  Index groups() const { return static_cast<Index>(problem_->groups().size()); }
  const MarginGroup& group(Index i) const { return problem_->groups()[static_cast<std::size_t>(i)]; }
  Index tokens(Index i) const { return group(i).tokens; }
  double rhs(Index row) const { return rhs_scale_ * problem_->rhs(row); }

  bool has_demands() const { return largest_rhs_ > 0; }       ///< some b > 0; else W = 0 is the answer
  bool stretchable() const { return stretchable_; }           ///< every equality has b = 0: multiples of W meet it too
  double rhs_scale() const { return rhs_scale_; }             ///< scaled row value / row value
  double weight_scale() const { return size_ / rhs_scale_; }  ///< W / scaled W, and so for objective and bound
  double query_factor() const { return size_; }               ///< the gathered queries / those of the problem
  double dual_scale() const { return size_ * size_ / rhs_scale_; }  ///< λ / scaled λ

  const float* single_query(Index i) const { return single_queries_.data() + i * dz(); }
  double token_scale() const { return token_scale_; }
  double query_square(Index i) const { return query_square_[i]; }  ///< ‖single_query‖²

  // Blocks lie within segments.
  Index block_size() const { return block_size_; }  ///< of the largest
  Index blocks() const { return static_cast<Index>(blocks_.size()) - 1; }
  Index block_begin(Index block) const { return blocks_[static_cast<std::size_t>(block)]; }
  Index block_end(Index block) const { return block_begin(block + 1); }
  Index block_at(Index first) const;  ///< the one that begins there
  Index first_block(Index segment) const { return first_block_[static_cast<std::size_t>(segment)]; }
  void for_each_block(const std::function<void(Index first, Index last)>& work) const;
  /// The sum of work(first, last) over the blocks.
  double sum_over_blocks(const std::function<double(Index first, Index last)>& work) const;

  /// Rows first … last−1 of U = Z Wᵀ, written to U.
  void project(const double* W, Index first, Index last, double* U) const;
  /// W = Gᵀ Z, where G has d numbers per group.
  void weigh(const double* G, double* W) const;

  /// W = Σ c δ zᵀ. each(i, take) calls take(token, c) for the rows of group i, which drop that token; zero coefficients
  /// and their tokens are skipped. `mixed` is working memory.
  template <class Each>
  void weigh_tokens(const Each& each, Storage<double>& mixed, double* W) const;

  /// Calls visit(i, logits) for every group with the logits of all its visible tokens. Reads the tokens once.
  void price(const double* W, const std::function<void(Index i, const double* logits)>& visit);

 private:
  void choose_scales();
  void gather_queries();
  std::vector<Index> cut(Index size) const;

  const MarginProblem* problem_;
  Threads* threads_;
  RowSums sums_;
  Index block_size_;
  std::vector<Index> blocks_, portions_, first_block_;  // where blocks begin, and what a thread prices at a time
  double token_scale_ = 1, query_scale_ = 1, rhs_scale_ = 1, largest_rhs_ = 0;
  double size_ = 1;  // token_scale_ · query_scale_
  bool stretchable_ = true;
  Storage<double> queries_, projected_;
  Storage<float> single_queries_;
  Buffer<double> query_square_;
};

template <class Each>
void ScaledProblem::weigh_tokens(const Each& each, Storage<double>& mixed, double* W) const {
  mixed.reserve(groups() * d());
  for_each_block([&](Index first, Index last) {
    thread_local std::vector<double> factor;
    thread_local std::vector<Index> token;
    for (Index i = first; i < last; ++i) {
      factor.assign(1, 0.0);
      token.assign(1, group(i).keep);
      each(i, [&](Index dropped, double c) {
        if (c == 0) return;
        factor[0] += c;
        factor.push_back(-c);
        token.push_back(dropped);
      });
      const auto used = static_cast<Index>(token.size());
      row_combination_at(group(i).X, token.data(), used > 1 ? used : 0, d(), factor.data(), mixed.data() + i * d());
    }
  });
  weigh(mixed.data(), W);
}

}  // namespace attsvm::internal
