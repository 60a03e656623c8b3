#include "margin/streaming/working_rows.h"

#include "base/kernels/stream.h"

namespace attsvm::internal {

WorkingRows::WorkingRows(const ScaledProblem& problem) : problem_(&problem) {
  const Index groups = problem.groups();
  for (auto* offsets : {&begin_, &gram_begin_, &old_begin_, &old_gram_begin_}) offsets->fill(groups + 1, 0);
  projected_.reserve(groups * problem.d());
}

/// Computes the offsets of the new blocks and makes room for them, generously: pages that are never written cost
/// nothing.
void WorkingRows::lay_out(const std::vector<std::vector<PickedRow>>& picked) {
  const Index groups = problem_->groups();
  begin_.swap(old_begin_);
  gram_begin_.swap(old_gram_begin_);
  lambda.swap(old_lambda_);
  deltas_.swap(old_deltas_);
  gram_.swap(old_gram_);
  for (Index i = 0; i < groups; ++i) {
    const auto count = static_cast<Index>(picked[static_cast<std::size_t>(i)].size());
    begin_[i + 1] = begin_[i] + count;
    gram_begin_[i + 1] = gram_begin_[i] + count * count;
  }
  all_size_ = problem_->sums().count(size());
  const Index numbers = size() * problem_->d();
  if (numbers > deltas_.capacity()) deltas_.reserve(numbers + numbers / 2);
  if (gram_size() > gram_.capacity()) gram_.reserve(2 * gram_size());
  for (auto* buffer : {&lambda, &value, &rhs_}) buffer->grow(size());
  row_.grow(size());
  equal_.grow(size());
  token_.grow(size() + groups);
}

void WorkingRows::rebuild(const std::vector<std::vector<PickedRow>>& picked) {
  lay_out(picked);
  problem_->for_each_block([&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      take(i, picked[static_cast<std::size_t>(i)], old_begin_[i], old_gram_begin_[i],
           old_begin_[i + 1] - old_begin_[i]);
    }
  });
}

void WorkingRows::take(Index i, const std::vector<PickedRow>& picked, Index old_begin, Index old_gram,
                       Index old_count) {
  thread_local std::vector<float> products;
  const MarginProblem& problem = problem_->problem();
  const MarginGroup& group = problem_->group(i);
  const Index d = problem_->d(), count = this->count(i);
  const double scale = problem_->token_scale();
  const double* keep = group.X + group.keep * d;
  double* K = gram_.data() + gram_begin_[i];
  products.resize(static_cast<std::size_t>(count));
  token_[begin(i) + i] = group.keep;
  for (Index e = 0; e < count; ++e) {
    const auto& [row, from, value_now] = picked[static_cast<std::size_t>(e)];
    const Index k = begin(i) + e, drop = problem.drop(row);
    float* delta = deltas_.data() + k * d;
    row_[k] = row;
    token_[k + i + 1] = drop;
    rhs_[k] = problem_->rhs(row);
    equal_[k] = problem.equal(row) ? 1 : 0;
    value[k] = value_now;
    if (from >= 0) {
      lambda[k] = old_lambda_[old_begin + from];
      std::copy_n(old_deltas_.data() + (old_begin + from) * d, d, delta);
      for (Index c = 0; c <= e; ++c) {
        const Index from_c = picked[static_cast<std::size_t>(c)].from;
        K[c * count + e] = K[e * count + c] = old_gram_[old_gram + from * old_count + from_c];
      }
    } else {
      lambda[k] = 0;
      const double* other = group.X + drop * d;
      for (Index j = 0; j < d; ++j) delta[j] = static_cast<float>(scale * (keep[j] - other[j]));
      row_dots(deltas(i), e + 1, d, delta, products.data());
      for (Index c = 0; c <= e; ++c) {
        K[c * count + e] = K[e * count + c] = problem_->query_square(i) * products[static_cast<std::size_t>(c)];
      }
    }
  }
}

void WorkingRows::take_values(const std::vector<std::vector<PickedRow>>& picked) {
  Index k = 0;
  for (const auto& group : picked) {
    for (const PickedRow& row : group) value[k++] = row.value;
  }
}

void WorkingRows::weigh(const double* coefficients, double* W) {
  problem_->weigh_tokens(
      [&](Index i, const auto& take) {
        for (Index k = begin(i); k < end(i); ++k) take(token_[k + i + 1], coefficients[k]);
      },
      mixed_, W);
}

void WorkingRows::evaluate(const double* W) {
  const Index d = problem_->d();
  problem_->for_each_block([&](Index first, Index last) {
    thread_local std::vector<double> logits;
    problem_->project(W, first, last, projected_.data() + first * d);
    for (Index i = first; i < last; ++i) {
      logits.resize(static_cast<std::size_t>(count(i)) + 1);
      row_dots_at(problem_->group(i).X, token_.data() + begin(i) + i, count(i) + 1, d, projected_.data() + i * d,
                  logits.data());
      for (Index k = begin(i); k < end(i); ++k)
        value[k] = logits[0] - logits[static_cast<std::size_t>(k - begin(i)) + 1];
    }
  });
}

double WorkingRows::slope(const double* move, Index first, Index last) const {
  double sum = 0;
  for (Index k = begin(first); k < begin(last); ++k) sum += move[k] * (rhs_[k] - value[k]);
  return sum;
}

double WorkingRows::demand() const {
  return problem_->sum_over_blocks([&](Index first, Index last) {
    double sum = 0;
    for (Index k = begin(first); k < begin(last); ++k) sum += lambda[k] * rhs_[k];
    return sum;
  });
}

}  // namespace attsvm::internal
