#pragma once

#include <utility>
#include <vector>

#include "attsvm/array.h"
#include "base/arb.h"

namespace attsvm::internal {

/// A number of kBits bits with an unbounded exponent, for decisions that double cannot make. Results are rounded and
/// have no error bound, so answers found with them are candidates that a certificate has to prove.
class Wide {
 public:
  static constexpr slong kBits = 512;

  Wide() { arb_init(&value_); }
  Wide(double x) : Wide() { arb_set_d(&value_, x); }  // NOLINT: doubles are wide numbers
  Wide(const Wide& other) : Wide() { arb_set(&value_, &other.value_); }
  Wide(Wide&& other) noexcept : Wide() { arb_swap(&value_, &other.value_); }
  Wide& operator=(const Wide& other) {
    if (this != &other) arb_set(&value_, &other.value_);
    return *this;
  }
  Wide& operator=(Wide&& other) noexcept {
    arb_swap(&value_, &other.value_);
    return *this;
  }
  ~Wide() { arb_clear(&value_); }

  Wide& operator+=(const Wide& y) { return arf_add(mid(), mid(), y.mid(), kBits, ARF_RND_NEAR), *this; }
  Wide& operator-=(const Wide& y) { return arf_sub(mid(), mid(), y.mid(), kBits, ARF_RND_NEAR), *this; }
  Wide& operator*=(const Wide& y) { return arf_mul(mid(), mid(), y.mid(), kBits, ARF_RND_NEAR), *this; }
  Wide& operator/=(const Wide& y) { return arf_div(mid(), mid(), y.mid(), kBits, ARF_RND_NEAR), *this; }
  friend Wide operator+(Wide x, const Wide& y) { return std::move(x += y); }
  friend Wide operator-(Wide x, const Wide& y) { return std::move(x -= y); }
  friend Wide operator*(Wide x, const Wide& y) { return std::move(x *= y); }
  friend Wide operator/(Wide x, const Wide& y) { return std::move(x /= y); }
  friend Wide operator-(Wide x) { return arf_neg(x.mid(), x.mid()), std::move(x); }
  friend bool operator<(const Wide& x, const Wide& y) { return arf_cmp(x.mid(), y.mid()) < 0; }
  friend bool operator>(const Wide& x, const Wide& y) { return y < x; }
  friend bool operator<=(const Wide& x, const Wide& y) { return !(y < x); }

  void add_product(const Wide& x, const Wide& y) { arf_addmul(mid(), x.mid(), y.mid(), kBits, ARF_RND_NEAR); }
  /// Times 2^exponent, exactly.
  Wide shifted(slong exponent) const {
    Wide result;
    arf_mul_2exp_si(result.mid(), mid(), exponent);
    return result;
  }
  bool is_zero() const { return arf_is_zero(mid()) != 0; }
  int sign() const { return arf_sgn(mid()); }
  /// e with |x| in [2^(e−1), 2^e); not for zero.
  slong exponent() const { return arf_abs_bound_lt_2exp_si(mid()); }
  double to_double() const { return arf_get_d(mid(), ARF_RND_NEAR); }

  friend Wide abs(Wide x) { return arf_abs(x.mid(), x.mid()), std::move(x); }
  friend Wide sqrt(const Wide& x) {
    Wide root;
    arf_sqrt(root.mid(), x.mid(), kBits, ARF_RND_NEAR);
    return root;
  }
  friend Wide dot(const Wide* x, const Wide* y, Index n) {
    Wide sum;
    if (n > 0) arb_approx_dot(&sum.value_, nullptr, 0, &x->value_, 1, &y->value_, 1, n, kBits);
    return sum;
  }

 private:
  arf_ptr mid() { return arb_midref(&value_); }
  arf_srcptr mid() const { return arb_midref(&value_); }

  arb_struct value_;  // its radius stays zero; arb_struct because Arb's dot products need it
};

static_assert(sizeof(Wide) == sizeof(arb_struct), "dot reads arrays of Wide as arrays of arb_struct");

using WideVector = std::vector<Wide>;

}  // namespace attsvm::internal
