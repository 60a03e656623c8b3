#include "margin/rows/scaled_problem.h"

#include <cmath>
#include <stdexcept>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

/// The power of two that brings `size` near one; 1 if `size` is 0. Clamped so that squares stay finite.
double scale_for(double size) {
  if (!(size > 0)) return 1;
  return std::ldexp(1.0, std::clamp(-std::ilogb(size), -200, 200));
}

double largest(const double* x, Index n) {
  double top = 0;
  for (Index j = 0; j < n; ++j) top = std::max(top, std::abs(x[j]));
  return top;
}

}  // namespace

ScaledProblem::ScaledProblem(const MarginProblem& problem, Threads& threads) : problem_(&problem), threads_(&threads) {
  if (problem.kind() == ProblemKind::value) throw std::logic_error("value problems are not for the working-set solver");
  const Index n = groups();
  block_size_ = n >= 4096 ? 128 : n >= 512 ? 64 : std::max<Index>(8, n / 8);
  choose_scales();
  gather_queries();
  projected_.reserve(n * d());
}

/// Chooses scales by the kept tokens alone, because reading all tokens would cost a pass over the data.
void ScaledProblem::choose_scales() {
  double token = 0, query = 0;
  for (const MarginGroup& each : problem_->groups()) {
    token = std::max(token, largest(each.X + each.keep * d(), d()));
    query = std::max(query, largest(each.z, dz()));
  }
  for (Index k = 0; k < problem_->rows(); ++k) {
    largest_rhs_ = std::max(largest_rhs_, std::abs(problem_->rhs(k)));
    stretchable_ = stretchable_ && !(problem_->equal(k) && problem_->rhs(k) != 0);
  }
  token_scale_ = scale_for(token * std::sqrt(static_cast<double>(d())));
  query_scale_ = scale_for(query * std::sqrt(static_cast<double>(dz())));
  rhs_scale_ = scale_for(largest_rhs_);
  size_ = token_scale_ * query_scale_;
}

void ScaledProblem::gather_queries() {
  queries_.reserve(groups() * dz());
  single_queries_.reserve(groups() * dz());
  query_square_.grow(groups());
  for_each_block([&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      double square = 0;
      for (Index j = 0; j < dz(); ++j) {
        const double z = query_scale_ * group(i).z[j];
        queries_[i * dz() + j] = token_scale_ * z;  // tokens are not copied, so the query gets both scales
        single_queries_[i * dz() + j] = static_cast<float>(z);
        square += z * z;
      }
      query_square_[i] = square;
    }
  });
}

void ScaledProblem::for_each_block(const std::function<void(Index, Index)>& work) const {
  threads_->for_each(blocks(), [&](Index block) { work(block_begin(block), block_end(block)); });
}

double ScaledProblem::sum_over_blocks(const std::function<double(Index, Index)>& work) const {
  std::vector<double> parts(static_cast<std::size_t>(blocks()));
  threads_->for_each(blocks(), [&](Index block) {
    parts[static_cast<std::size_t>(block)] = work(block_begin(block), block_end(block));
  });
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

void ScaledProblem::project(const double* W, Index first, Index last, double* U) const {
  gemm(false, true, last - first, d(), dz(), 1, queries_.data() + first * dz(), dz(), W, dz(), 0, U, d());
}

void ScaledProblem::weigh(const double* G, double* W) const {
  const Index rows = d() >= 256 ? 64 : std::max<Index>(8, d() / 4);
  threads_->for_each((d() + rows - 1) / rows, [&](Index part) {
    const Index begin = part * rows, count = std::min(rows, d() - begin);
    gemm(true, false, count, dz(), groups(), 1, G + begin, d(), queries_.data(), dz(), 0, W + begin * dz(), dz());
  });
}

void ScaledProblem::price(const double* W, const std::function<void(Index, const double*)>& visit) {
  const Index some = std::clamp<Index>(groups() / 16, 1, 64);
  threads_->for_each((groups() + some - 1) / some, [&](Index part) {
    thread_local std::vector<double> logits;
    const Index first = part * some, last = std::min(groups(), first + some);
    project(W, first, last, projected_.data() + first * d());
    for (Index i = first; i < last; ++i) {
      logits.resize(static_cast<std::size_t>(tokens(i)));
      row_dots(group(i).X, tokens(i), d(), projected_.data() + i * d(), logits.data());
      visit(i, logits.data());
    }
  });
}

}  // namespace attsvm::internal
