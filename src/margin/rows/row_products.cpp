#include "margin/rows/row_products.h"

#include <algorithm>

#include "base/blas.h"
#include "base/kernels/stream.h"

namespace attsvm::internal {

RowProducts::RowProducts(const MarginProblem& problem, Threads& threads)
    : threads_(threads),
      d_(problem.d()),
      dz_(problem.dz()),
      queries_(static_cast<Index>(problem.groups().size())),
      chunk_(std::clamp<Index>(queries_ / 32, 16, 128)),
      loop_(problem.rows(), threads),
      square_sizes_(problem.rows()) {
  zeta_.grow(queries_ * dz_);
  vectors_.grow(queries_ * d_);
  for (const MarginGroup& group : problem.groups()) {
    std::copy_n(group.z, dz_, zeta_.data() + static_cast<Index>(tokens_.size()) * dz_);
    describe(problem, group);
  }
  threads_.for_each(chunks(), [&](Index chunk) { measure(problem, chunk); });
}

void RowProducts::describe(const MarginProblem& problem, const MarginGroup& group) {
  const Index first_run = static_cast<Index>(runs_.size()), first = group.first_row, last = first + group.rows;
  Index low = group.keep, high = group.keep;
  for (Index k = first; k < last && problem.drop(k) >= 0; ++k) {
    low = std::min(low, problem.drop(k));
    high = std::max(high, problem.drop(k));
  }
  const bool value = problem.drop(first) < 0;  // one row, made of the kept token alone
  const bool sparse = !value && high - low + 1 > 2 * (group.rows + 1);
  Tokens tokens{group.X + low * d_, high - low + 1, -1, group.keep - low, first_run, 0, first, group.sign};
  if (sparse) {
    tokens.X = group.X;
    tokens.count = group.rows + 1;
    tokens.list = static_cast<Index>(listed_.size());
    tokens.keep = 0;
    listed_.push_back(group.keep);
    for (Index k = first; k < last; ++k) listed_.push_back(problem.drop(k));
    runs_.push_back({first, 1, group.rows});
  } else if (!value) {
    for (Index k = first; k < last; ++k) {
      if (k > first && problem.drop(k) == problem.drop(k - 1) + 1) {
        ++runs_.back().count;
      } else {
        runs_.push_back({k, problem.drop(k) - low, 1});
      }
    }
  }
  tokens.last_run = static_cast<Index>(runs_.size());
  longest_ = std::max(longest_, tokens.count);
  tokens_.push_back(tokens);
}

void RowProducts::measure(const MarginProblem& problem, Index chunk) {
  Eigen::VectorXd delta(d_);
  each_query(chunk, [&](Index i) {
    const MarginGroup& group = problem.groups()[static_cast<std::size_t>(i)];
    const double zeta = ConstVector(group.z, dz_).squaredNorm();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      problem.delta(group, k, delta.data());
      square_sizes_(k) = delta.squaredNorm() * zeta;
    }
  });
}

template <class Work>
void RowProducts::each_query(Index chunk, Work&& work) {
  const Index last = std::min(queries_, (chunk + 1) * chunk_);
  for (Index i = chunk * chunk_; i < last; ++i) work(i);
}

/// W ζ_i for the queries of a chunk.
void RowProducts::spread(const Eigen::VectorXd& W, Index chunk) {
  const Index first = chunk * chunk_, count = std::min(chunk_, queries_ - first);
  gemm(false, true, count, d_, dz_, 1, zeta_.data() + first * dz_, dz_, W.data(), dz_, 0, vectors_.data() + first * d_,
       d_);
}

void RowProducts::evaluate(Index query, double* logits, double* values) const {
  const Tokens& tokens = tokens_[static_cast<std::size_t>(query)];
  const double* u = vectors_.data() + query * d_;
  if (tokens.list >= 0) {
    row_dots_at(tokens.X, listed_.data() + tokens.list, tokens.count, d_, u, logits);
  } else {
    row_dots(tokens.X, tokens.count, d_, u, logits);
  }
  const double kept = logits[tokens.keep];
  if (tokens.first_run == tokens.last_run) values[tokens.first_row] = tokens.sign * kept;
  for (Index r = tokens.first_run; r < tokens.last_run; ++r) {
    const Run& run = runs_[static_cast<std::size_t>(r)];
    for (Index j = 0; j < run.count; ++j) values[run.row + j] = kept - logits[run.token + j];
  }
}

/// Σ c_k δ_k as one combination of tokens: the kept token has the sum of all c as its factor, each dropped one its −c.
template <class Expression>
void RowProducts::combine(Index query, const Expression& c, double* coefficients) {
  const Tokens& tokens = tokens_[static_cast<std::size_t>(query)];
  std::fill_n(coefficients, tokens.count, 0.0);
  double kept = tokens.first_run == tokens.last_run ? tokens.sign * c(tokens.first_row) : 0;
  for (Index r = tokens.first_run; r < tokens.last_run; ++r) {
    const Run& run = runs_[static_cast<std::size_t>(r)];
    Eigen::Map<Eigen::VectorXd> dropped(coefficients + run.token, run.count);
    dropped = -c.segment(run.row, run.count);
    kept -= dropped.sum();
  }
  coefficients[tokens.keep] = kept;
  double* sum = vectors_.data() + query * d_;
  if (tokens.list >= 0) {
    row_combination_at(tokens.X, listed_.data() + tokens.list, tokens.count, d_, coefficients, sum);
  } else {
    row_combination(tokens.X, tokens.count, d_, coefficients, sum);
  }
}

/// Σ_i (Σ_k c_k δ_k) ζ_iᵀ; each chunk computes a few rows of the sum.
void RowProducts::collect(Eigen::VectorXd& sum) {
  sum.resize(unknowns());
  const Index height = std::max<Index>(4, d_ / 8);
  threads_.for_each((d_ + height - 1) / height, [&](Index chunk) {
    const Index first = chunk * height, count = std::min(height, d_ - first);
    gemm(true, false, count, dz_, queries_, 1, vectors_.data() + first, d_, zeta_.data(), dz_, 0,
         sum.data() + first * dz_, dz_);
  });
}

void RowProducts::values(const Eigen::VectorXd& W, Eigen::VectorXd& values) {
  threads_.for_each(chunks(), [&](Index chunk) {
    std::vector<double> logits(static_cast<std::size_t>(longest_));
    spread(W, chunk);
    each_query(chunk, [&](Index i) { evaluate(i, logits.data(), values.data()); });
  });
}

void RowProducts::adjoint(const Eigen::VectorXd& c, Eigen::VectorXd& sum) {
  threads_.for_each(chunks(), [&](Index chunk) {
    std::vector<double> coefficients(static_cast<std::size_t>(longest_));
    each_query(chunk, [&](Index i) { combine(i, c, coefficients.data()); });
  });
  collect(sum);
}

void RowProducts::normal(const Eigen::VectorXd& W, const Eigen::VectorXd& weight, Eigen::VectorXd& values,
                         Eigen::VectorXd& sum) {
  threads_.for_each(chunks(), [&](Index chunk) {
    std::vector<double> work(static_cast<std::size_t>(longest_));
    spread(W, chunk);
    each_query(chunk, [&](Index i) {
      evaluate(i, work.data(), values.data());
      combine(i, weight.cwiseProduct(values), work.data());
    });
  });
  collect(sum);
}

}  // namespace attsvm::internal
