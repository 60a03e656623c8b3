#pragma once

// Optimizers by their definitions, in 66 digits with exponents of any size.

#include <algorithm>
#include <optional>
#include <vector>

#include "train/directions.h"
#include "train_oracle.h"

namespace attsvm::test {

/// A matrix of numbers with 66 digits.
struct DigitsMatrix {
  Index rows = 0, cols = 0;
  std::vector<Digits> numbers{};

  DigitsMatrix() = default;
  DigitsMatrix(Index r, Index c) : rows(r), cols(c), numbers(static_cast<std::size_t>(r * c)) {}
  explicit DigitsMatrix(const RowMatrix& from) : DigitsMatrix(from.rows(), from.cols()) {
    for (Index k = 0; k < from.size(); ++k) numbers[static_cast<std::size_t>(k)] = Digits(from.data()[k]);
  }
  Digits& operator()(Index i, Index j) { return numbers[static_cast<std::size_t>(i * cols + j)]; }
  const Digits& operator()(Index i, Index j) const { return numbers[static_cast<std::size_t>(i * cols + j)]; }
  /// The same function of every number.
  template <class F>
  DigitsMatrix map(F&& f) const {
    DigitsMatrix out = *this;
    for (Digits& x : out.numbers) x = f(x);
    return out;
  }
  /// f(own number, that of `other`).
  template <class F>
  DigitsMatrix with(const DigitsMatrix& other, F&& f) const {
    DigitsMatrix out = *this;
    for (std::size_t k = 0; k < numbers.size(); ++k) out.numbers[k] = f(numbers[k], other.numbers[k]);
    return out;
  }
  DigitsMatrix transposed() const {
    DigitsMatrix out(cols, rows);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) out(j, i) = (*this)(i, j);
    }
    return out;
  }
  friend DigitsMatrix operator*(const DigitsMatrix& a, const DigitsMatrix& b) {
    DigitsMatrix out(a.rows, b.cols);
    for (Index i = 0; i < a.rows; ++i) {
      for (Index j = 0; j < b.cols; ++j) {
        for (Index k = 0; k < a.cols; ++k) out(i, j) = out(i, j) + a(i, k) * b(k, j);
      }
    }
    return out;
  }
  Digits power_sum(double p) const {
    Digits sum(0);
    for (const Digits& x : numbers) sum = x.is_zero() ? sum : sum + pow(abs(x), Digits(p));
    return sum;
  }
  RowMatrix rounded() const {
    RowMatrix out(rows, cols);
    for (Index k = 0; k < out.size(); ++k) out.data()[k] = numbers[static_cast<std::size_t>(k)].to_double();
    return out;
  }
};

inline Digits sign_of(const Digits& x) { return Digits(x.is_zero() ? 0 : x > Digits(0) ? 1 : -1); }

/// Singular values and vectors by one-sided Jacobi rotations: A = U diag(sigma) Vᵀ, largest first.
struct DigitsSvd {
  std::vector<std::vector<Digits>> U, V;  // by columns
  std::vector<Digits> sigma;

  explicit DigitsSvd(const DigitsMatrix& A) {
    const auto n = static_cast<std::size_t>(A.cols), m = static_cast<std::size_t>(A.rows);
    std::vector<std::vector<Digits>> a(n, std::vector<Digits>(m)), v(n, std::vector<Digits>(n));
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < m; ++i) a[j][i] = A(static_cast<Index>(i), static_cast<Index>(j));
      v[j][j] = Digits(1);
    }
    const auto dot = [](const std::vector<Digits>& x, const std::vector<Digits>& y) {
      Digits sum(0);
      for (std::size_t k = 0; k < x.size(); ++k) sum = sum + x[k] * y[k];
      return sum;
    };
    for (int sweep = 0; sweep < 30; ++sweep) {
      for (std::size_t p = 0; p < n; ++p) {
        for (std::size_t q = p + 1; q < n; ++q) {
          const Digits off = dot(a[p], a[q]), pp = dot(a[p], a[p]), qq = dot(a[q], a[q]);
          if (off.is_zero()) continue;
          const Digits zeta = (qq - pp) / (Digits(2) * off);
          const Digits t = (zeta > Digits(0) ? Digits(1) : Digits(-1)) / (abs(zeta) + sqrt(Digits(1) + zeta * zeta));
          const Digits c = Digits(1) / sqrt(Digits(1) + t * t), s = c * t;
          const auto rotate = [&](std::vector<Digits>& x, std::vector<Digits>& y) {
            for (std::size_t k = 0; k < x.size(); ++k) {
              const Digits old = x[k];
              x[k] = c * old - s * y[k];
              y[k] = s * old + c * y[k];
            }
          };
          rotate(a[p], a[q]);
          rotate(v[p], v[q]);
        }
      }
    }
    std::vector<std::size_t> order(n);
    for (std::size_t k = 0; k < n; ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t p, std::size_t q) { return dot(a[p], a[p]) > dot(a[q], a[q]); });
    for (const std::size_t k : order) {
      sigma.push_back(sqrt(dot(a[k], a[k])));
      U.push_back(a[k]);
      for (Digits& x : U.back()) x = sigma.back().is_zero() ? Digits(0) : x / sigma.back();
      V.push_back(v[k]);
    }
  }
};

/// A direction, and how much rounding of g may change it relative to its size.
struct SteepestOracle {
  DigitsMatrix direction;
  double condition = 1;
  bool clear = true;  ///< false: a singular value is so close to where it begins to count that rounding decides
};

/// argmax ⟨g,D⟩ over N(D) ≤ 1; singular values at most kRankTolerance times the largest count as zero.
inline SteepestOracle steepest_oracle(const Norm& norm, const DigitsMatrix& g) {
  const double q = norm.dual().power;
  const auto shaped = [&](const Digits& x, const Digits& q_norm) {  // x ≥ 0
    if (x.is_zero()) return Digits(0);
    return norm.power == std::numeric_limits<double>::infinity() ? Digits(1) : pow(x / q_norm, Digits(q - 1));
  };
  SteepestOracle out{g};
  if (norm == Norm::l1()) {
    std::size_t top = 0;
    for (std::size_t k = 0; k < g.numbers.size(); ++k) top = abs(g.numbers[k]) > abs(g.numbers[top]) ? k : top;
    for (std::size_t k = 0; k < g.numbers.size(); ++k)
      out.direction.numbers[k] = k == top ? sign_of(g.numbers[k]) : Digits(0);
    return out;
  }
  if (norm.is_entrywise()) {
    const Digits q_norm = q == std::numeric_limits<double>::infinity() ? Digits(1) : pow(g.power_sum(q), Digits(1 / q));
    out.direction = g.map([&](const Digits& x) { return sign_of(x) * shaped(abs(x), q_norm); });
    out.condition = q;
    return out;
  }
  const DigitsSvd svd(g);
  std::vector<Digits> sizes;
  Digits sum(0);
  for (const Digits& sigma : svd.sigma) {
    const double share = (sigma / svd.sigma[0]).to_double();
    if (share > internal::kRankTolerance / 10 && share < internal::kRankTolerance * 10) out.clear = false;
    if (share <= internal::kRankTolerance) continue;
    sizes.push_back(sigma);
    if (q < std::numeric_limits<double>::infinity()) sum = sum + pow(sigma, Digits(q));
    out.condition = std::max(out.condition, q / share);
  }
  const Digits q_norm = norm.is_nuclear() ? Digits(1) : pow(sum, Digits(1 / q));
  if (norm.is_nuclear()) {
    if (sizes.size() > 1) out.condition = (svd.sigma[0] / (svd.sigma[0] - svd.sigma[1])).to_double();
    sizes.resize(1);
  }
  for (Digits& x : out.direction.numbers) x = Digits(0);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const Digits size = norm.is_nuclear() ? Digits(1) : shaped(sizes[k], q_norm);
    for (Index i = 0; i < g.rows; ++i) {
      for (Index j = 0; j < g.cols; ++j)
        out.direction(i, j) =
            out.direction(i, j) + size * svd.U[k][static_cast<std::size_t>(i)] * svd.V[k][static_cast<std::size_t>(j)];
    }
  }
  return out;
}

/// ∂L/∂W of a task with a linear head and logistic loss: Σ_i ℓ′_i Σ_t s_t (Σ_s s_s (γ_t − γ_s)) x_t z_iᵀ. No sum of it
/// cancels.
inline DigitsMatrix gradient_oracle(const AttentionTask& task, const DigitsMatrix& W) {
  const Index d = task.key_size(), dz = task.query_size(), dv = task.value_size();
  DigitsMatrix G(d, dz);
  for (Index i = 0; i < task.queries(); ++i) {
    const ConstRows X = task.keys(task.sequence(i)), V = task.values(task.sequence(i));
    const ConstVector z = task.query(i);
    const Index T = task.visible(i);
    std::vector<Digits> weight, gamma;
    Digits top(0), sum(0), u(0);
    for (Index t = 0; t < T; ++t) {
      Digits logit(0), score(0);
      for (Index j = 0; j < d; ++j) {
        for (Index k = 0; k < dz; ++k) logit = logit + Digits(X(t, j)) * W(j, k) * Digits(z[k]);
      }
      for (Index j = 0; j < dv; ++j) score = score + Digits(task.label(i)) * Digits(V(t, j)) * Digits(task.head().v[j]);
      if (t == 0 || logit > top) top = logit;
      weight.push_back(logit);
      gamma.push_back(score);
    }
    for (Digits& w : weight) sum = sum + (w = exp(w - top));
    for (Digits& w : weight) w = w / sum;
    for (std::size_t t = 0; t < weight.size(); ++t) u = u + weight[t] * gamma[t];
    const Digits slope = Digits(-1) / (Digits(1) + exp(u)) / Digits(static_cast<double>(task.queries()));
    for (std::size_t t = 0; t < weight.size(); ++t) {
      Digits ahead(0);
      for (std::size_t s = 0; s < weight.size(); ++s) ahead = ahead + weight[s] * (gamma[t] - gamma[s]);
      const Digits factor = slope * weight[t] * ahead;
      for (Index j = 0; j < d; ++j) {
        for (Index k = 0; k < dz; ++k) G(j, k) = G(j, k) + factor * Digits(X(static_cast<Index>(t), j)) * Digits(z[k]);
      }
    }
  }
  return G;
}

/// An optimizer as it is defined, for one array.
class OptimizerOracle {
 public:
  explicit OptimizerOracle(const TrainSettings& settings) : settings_(settings) {}

  /// What the next step subtracts, divided by the step size; weight decay is not included.
  SteepestOracle move(const DigitsMatrix& g) {
    const auto mix = [&](double b) {
      return m_.with(g, [&](const Digits& m, const Digits& x) { return Digits(b) * m + (Digits(1) - Digits(b)) * x; });
    };
    if (steps_++ == 0) m_ = s_ = g.map([](const Digits&) { return Digits(0); });
    const Optimizer kind = settings_.optimizer;
    if (kind == Optimizer::adam || kind == Optimizer::adamw) {
      const auto [b1, b2] = settings_.betas.value_or(std::array<double, 2>{.9, .999});
      m_ = mix(b1);
      s_ = s_.with(
          g, [&, b = b2](const Digits& s, const Digits& x) { return Digits(b) * s + (Digits(1) - Digits(b)) * x * x; });
      const Digits first = Digits(1) - pow(Digits(b1), Digits(steps_)),
                   second = Digits(1) - pow(Digits(b2), Digits(steps_));
      const Digits epsilon(settings_.epsilon.value_or(1e-8));
      return {m_.with(s_, [&](const Digits& m, const Digits& s) {
        return m.is_zero() ? Digits(0) : m / first / (sqrt(s / second) + epsilon);
      })};
    }
    if (kind == Optimizer::lion) {
      const auto [b1, b2] = settings_.betas.value_or(std::array<double, 2>{.9, .99});
      const DigitsMatrix used = mix(b1);
      m_ = mix(b2);
      return steepest_oracle(Norm::largest(), used);
    }
    const double usual = kind == Optimizer::signum ? .9 : kind == Optimizer::muon ? .95 : 0;
    m_ = mix(settings_.momentum.value_or(usual));
    if (kind == Optimizer::gd) return {m_};
    const Norm norm = kind == Optimizer::signum ? Norm::largest()
                      : kind == Optimizer::muon ? Norm::spectral()
                      : kind == Optimizer::ngd  ? Norm::frobenius()
                                                : settings_.norm;
    return steepest_oracle(norm, m_);
  }

 private:
  TrainSettings settings_;
  double steps_ = 0;
  DigitsMatrix m_, s_;
};

}  // namespace attsvm::test
