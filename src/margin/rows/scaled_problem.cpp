#include "margin/rows/scaled_problem.h"

#include <algorithm>
#include <array>
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

ScaledProblem::ScaledProblem(const MarginProblem& problem, Threads& threads, const SharedRows* shared)
    : problem_(&problem), threads_(&threads), sums_(problem, shared) {
  if (problem.kind() == ProblemKind::value) throw std::logic_error("value problems are not for the working-set solver");
  const Index n = sums_.groups();
  block_size_ = n >= 4096 ? 128 : n >= 512 ? 64 : std::max<Index>(8, n / 8);
  blocks_ = cut(block_size_);
  portions_ = cut(std::clamp<Index>(n / 16, 1, 64));
  for (Index segment = 0; segment <= sums_.segments(); ++segment)
    first_block_.push_back(segment < sums_.segments() ? block_at(sums_.begin(segment)) : blocks());
  choose_scales();
  gather_queries();
  projected_.reserve(groups() * d());
}

/// Cuts every segment into pieces of this many groups; the last one of each has what is left.
std::vector<Index> ScaledProblem::cut(Index size) const {
  std::vector<Index> cuts;
  for (Index segment = 0; segment < sums_.segments(); ++segment) {
    for (Index first = sums_.begin(segment); first < sums_.end(segment); first += size) cuts.push_back(first);
  }
  cuts.push_back(groups());
  return cuts;
}

Index ScaledProblem::block_at(Index first) const {
  return std::lower_bound(blocks_.begin(), blocks_.end(), first) - blocks_.begin();
}

/// Chooses scales by the kept tokens alone, because reading all tokens would cost a pass over the data.
void ScaledProblem::choose_scales() {
  double token = 0, query = 0, fixed = 0;
  for (const MarginGroup& each : problem_->groups()) {
    token = std::max(token, largest(each.X + each.keep * d(), d()));
    query = std::max(query, largest(each.z, dz()));
  }
  for (Index k = 0; k < problem_->rows(); ++k) {
    largest_rhs_ = std::max(largest_rhs_, std::abs(problem_->rhs(k)));
    if (problem_->equal(k) && problem_->rhs(k) != 0) fixed = 1;
  }
  std::array all{token, query, largest_rhs_, fixed};
  sums_.take_largest(all);
  token = all[0];
  query = all[1];
  largest_rhs_ = all[2];
  stretchable_ = all[3] == 0;
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
  return sums_.number<double>([&](Index segment) {
    double sum = 0;
    for (Index block = first_block(segment); block < first_block(segment + 1); ++block)
      sum += parts[static_cast<std::size_t>(block)];
    return sum;
  });
}

void ScaledProblem::project(const double* W, Index first, Index last, double* U) const {
  gemm(false, true, last - first, d(), dz(), 1, queries_.data() + first * dz(), dz(), W, dz(), 0, U, d());
}

void ScaledProblem::weigh(const double* G, double* W) const {
  const Index rows = d() >= 256 ? 64 : std::max<Index>(8, d() / 4), parts = (d() + rows - 1) / rows;
  const auto weigh_segments = [&](Index from, Index to, double* out) {
    threads_->for_each((to - from) * parts, [&](Index piece) {
      const Index segment = from + piece / parts, first = sums_.begin(segment), size = sums_.end(segment) - first;
      const Index begin = piece % parts * rows, count = std::min(rows, d() - begin);
      // A product of no rows still sets the sum to 0.
      gemm(true, false, count, dz(), size, 1, G + first * d() + begin, d(), queries_.data() + first * dz(), dz(), 0,
           out + ((segment - from) * d() + begin) * dz(), dz());
    });
  };
  sums_.matrix<double>(d() * dz(), threads_->count(), *threads_, weigh_segments, W);
}

void ScaledProblem::price(const double* W, const std::function<void(Index, const double*)>& visit) {
  threads_->for_each(static_cast<Index>(portions_.size()) - 1, [&](Index portion) {
    thread_local std::vector<double> logits;
    const Index first = portions_[static_cast<std::size_t>(portion)],
                last = portions_[static_cast<std::size_t>(portion) + 1];
    project(W, first, last, projected_.data() + first * d());
    for (Index i = first; i < last; ++i) {
      logits.resize(static_cast<std::size_t>(tokens(i)));
      row_dots(group(i).X, tokens(i), d(), projected_.data() + i * d(), logits.data());
      visit(i, logits.data());
    }
  });
}

}  // namespace attsvm::internal
