#pragma once

// The loss of a task as it is defined, for any type of number. With dual numbers it is the autodiff oracle of the
// gradients; with MPFR numbers inside the duals it stays correct where doubles underflow.

#include <mpfr.h>

#include <cmath>
#include <vector>

#include "attsvm/attsvm.h"

namespace attsvm::test {

/// A number with an exponent of any size.
template <int bits>
class BasicReal {
  using Real = BasicReal;

 public:
  BasicReal(double value = 0) {  // NOLINT: numbers convert
    mpfr_init2(number_, bits);
    mpfr_set_d(number_, value, MPFR_RNDN);
  }
  BasicReal(const Real& other) : BasicReal() { mpfr_set(number_, other.number_, MPFR_RNDN); }
  Real& operator=(const Real& other) {
    mpfr_set(number_, other.number_, MPFR_RNDN);
    return *this;
  }
  ~BasicReal() { mpfr_clear(number_); }

  friend Real operator+(const Real& a, const Real& b) { return apply(mpfr_add, a, b); }
  friend Real operator-(const Real& a, const Real& b) { return apply(mpfr_sub, a, b); }
  friend Real operator*(const Real& a, const Real& b) { return apply(mpfr_mul, a, b); }
  friend Real operator/(const Real& a, const Real& b) { return apply(mpfr_div, a, b); }
  friend bool operator>(const Real& a, const Real& b) { return mpfr_greater_p(a.number_, b.number_) != 0; }
  friend Real exp(const Real& a) { return apply(mpfr_exp, a); }
  friend Real log(const Real& a) { return apply(mpfr_log, a); }
  friend Real sqrt(const Real& a) { return apply(mpfr_sqrt, a); }
  friend Real abs(const Real& a) { return apply(mpfr_abs, a); }
  friend Real pow(const Real& a, const Real& b) { return apply(mpfr_pow, a, b); }
  double to_double() const { return mpfr_get_d(number_, MPFR_RNDN); }
  bool is_zero() const { return mpfr_zero_p(number_) != 0; }

 private:
  template <class Function>
  static Real apply(Function function, const Real& a) {
    Real result;
    function(result.number_, a.number_, MPFR_RNDN);
    return result;
  }
  template <class Function>
  static Real apply(Function function, const Real& a, const Real& b) {
    Real result;
    function(result.number_, a.number_, b.number_, MPFR_RNDN);
    return result;
  }

  mpfr_t number_;
};

using Real = BasicReal<20'000>;  ///< for sums whose terms cancel down to e^{-4000}
using Digits = BasicReal<220>;   ///< 66 digits

/// value + slope·ε with ε² = 0
template <class T>
struct Dual {
  T value{0}, slope{0};
  Dual(double v = 0) : value(v) {}  // NOLINT: numbers convert
  Dual(T v, T s) : value(v), slope(s) {}

  friend Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.value * b.slope + a.slope * b.value};
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const T ratio = a.value / b.value;
    return {ratio, (a.slope - ratio * b.slope) / b.value};
  }
  friend bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  friend Dual exp(const Dual& a) {
    using std::exp;
    const T grown = exp(a.value);
    return {grown, grown * a.slope};
  }
  friend Dual log(const Dual& a) {
    using std::log;
    return {log(a.value), a.slope / a.value};
  }
};

/// mean ℓ(y_i h(V_iᵀ softmax(X_i W z_i + b_i))); W row-major (d,dz), v the head's weights. Label smoothing is for the
/// logistic loss. Adds `entropy` times the mean entropy of the softmax. Many heads: W is (H,d,dz), v is (H,dv), and
/// their outputs add up.
template <class T>
T plain_loss(const AttentionTask& task, Loss loss, const std::vector<T>& W, const std::vector<T>& v,
             double smoothing = 0, double entropy = 0) {
  using std::exp;
  using std::log;
  const auto at = [](const std::vector<T>& list, Index k) -> const T& { return list[static_cast<std::size_t>(k)]; };
  const Index d = task.key_size(), dz = task.query_size(), dv = task.value_size();
  const Head& head = task.head();
  T total(0);
  for (Index i = 0; i < task.queries(); ++i) {
    const ConstRows X = task.keys(task.sequence(i)), V = task.values(task.sequence(i));
    const ConstVector z = task.query(i);
    T f(0);
    for (Index h = 0; h < static_cast<Index>(W.size()) / (d * dz); ++h) {
      std::vector<T> weights, mixed(static_cast<std::size_t>(dv), T(0));
      T sum(0), heat(0);  // heat: Σ weight · logit
      for (Index t = 0; t < task.visible(i); ++t) {
        T logit(task.biased() ? task.bias(i)[t] : 0.0);
        for (Index j = 0; j < d; ++j) {
          for (Index k = 0; k < dz; ++k) logit = logit + T(X(t, j)) * at(W, (h * d + j) * dz + k) * T(z[k]);
        }
        weights.push_back(exp(logit));
        sum = sum + weights.back();
        if (entropy > 0) heat = heat + weights.back() * logit;
      }
      if (entropy > 0) total = total + T(entropy) * (log(sum) - heat / sum);
      for (Index t = 0; t < task.visible(i); ++t) {
        for (Index j = 0; j < dv; ++j) {
          T& x = mixed[static_cast<std::size_t>(j)];
          x = x + at(weights, t) / sum * T(V(t, j));
        }
      }
      if (head.kind == HeadKind::hidden) {
        for (Index k = 0; k < head.B.cols(); ++k) {
          T unit(0);
          for (Index j = 0; j < dv; ++j) unit = unit + T(head.B(j, k)) * at(mixed, j);
          if (unit > T(0)) f = f + at(v, k) * unit;
        }
      } else {
        for (Index j = 0; j < dv; ++j) {
          f = f + at(v, h * dv + j) * at(mixed, j) - T(head.lambda) * at(mixed, j) * at(mixed, j);
        }
      }
    }
    const T u = T(task.label(i)) * f;
    if (smoothing > 0) {
      total = total + T(1 - smoothing / 2) * log(T(1) + exp(T(0) - u)) + T(smoothing / 2) * log(T(1) + exp(u));
      continue;
    }
    total = total + (loss == Loss::logistic      ? log(T(1) + exp(T(0) - u))
                     : loss == Loss::exponential ? exp(T(0) - u)
                                                 : T(0) - u);
  }
  return total / T(static_cast<double>(task.queries()));
}

template <class T>
std::vector<Dual<T>> to_duals(const double* numbers, Index count) {
  std::vector<Dual<T>> list;
  for (Index k = 0; k < count; ++k) list.emplace_back(numbers[k]);
  return list;
}

/// ∂L/∂W, then ∂L/∂v, entry by entry.
template <class T>
std::vector<T> oracle_gradient(const AttentionTask& task, Loss loss, const RowMatrix& W, const Eigen::VectorXd& v,
                               double smoothing = 0, double entropy = 0) {
  auto weights = to_duals<T>(W.data(), W.size()), head = to_duals<T>(v.data(), v.size());
  std::vector<T> gradient;
  for (auto* list : {&weights, &head}) {
    for (Dual<T>& entry : *list) {
      entry.slope = T(1);
      gradient.push_back(plain_loss(task, loss, weights, head, smoothing, entropy).slope);
      entry.slope = T(0);
    }
  }
  return gradient;
}

}  // namespace attsvm::test
