#include "verify/ball.h"

#include <cmath>

namespace attsvm::internal::proof {
namespace {

/// Arb caches constants and freed numbers per thread; this frees them when the thread ends.
struct Cleanup {
  ~Cleanup() { flint_cleanup(); }
};

thread_local slong working_bits = 128;

/// Owns an arf_t, a floating-point number of Arb.
class Float {
 public:
  Float() { arf_init(x_); }
  ~Float() { arf_clear(x_); }
  Float(const Float&) = delete;
  Float& operator=(const Float&) = delete;
  arf_ptr get() { return x_; }

 private:
  arf_t x_;
};

constexpr slong kDoubleBits = 64;  // ends are rounded to this many bits, outward, before they become doubles

}  // namespace

WorkingBits::WorkingBits(slong bits) : before_(working_bits) {
  static thread_local const Cleanup cleanup;
  working_bits = bits;
}
WorkingBits::~WorkingBits() { working_bits = before_; }
slong WorkingBits::now() { return working_bits; }

Ball Ball::between(const Ball& low, const Ball& high) {
  Ball result;
  Float a, b;
  arb_get_lbound_arf(a.get(), low.x_, working_bits);
  arb_get_ubound_arf(b.get(), high.x_, working_bits);
  if (arf_is_nan(a.get()) || arf_is_nan(b.get()) || arf_cmp(a.get(), b.get()) > 0) {
    arb_indeterminate(result.x_);
  } else {
    arb_set_interval_arf(result.x_, a.get(), b.get(), working_bits);
  }
  return result;
}

Ball Ball::around(double middle, double error) {
  Ball result(middle);
  if (!std::isfinite(middle) || !std::isfinite(error)) {
    arb_indeterminate(result.x_);
  } else {
    arb_add_error(result.x_, Ball(error).x_);
  }
  return result;
}

Ball Ball::of(const arb_t x) {
  Ball result;
  arb_set(result.x_, x);
  return result;
}

double Ball::lower() const {
  Float end;
  arb_get_lbound_arf(end.get(), x_, kDoubleBits);
  return arf_get_d(end.get(), ARF_RND_FLOOR);
}

double Ball::upper() const {
  Float end;
  arb_get_ubound_arf(end.get(), x_, kDoubleBits);
  return arf_get_d(end.get(), ARF_RND_CEIL);
}

double Ball::middle() const { return arf_get_d(arb_midref(x_), ARF_RND_NEAR); }

Ball operator+(const Ball& a, const Ball& b) {
  Ball result;
  arb_add(result.get(), a.get(), b.get(), working_bits);
  return result;
}

Ball operator-(const Ball& a, const Ball& b) {
  Ball result;
  arb_sub(result.get(), a.get(), b.get(), working_bits);
  return result;
}

Ball operator*(const Ball& a, const Ball& b) {
  Ball result;
  arb_mul(result.get(), a.get(), b.get(), working_bits);
  return result;
}

Ball operator/(const Ball& a, const Ball& b) {
  Ball result;
  arb_div(result.get(), a.get(), b.get(), working_bits);
  return result;
}

Ball operator-(const Ball& a) {
  Ball result;
  arb_neg(result.get(), a.get());
  return result;
}

Ball abs(const Ball& a) {
  Ball result;
  arb_abs(result.get(), a.get());
  return result;
}

Ball sqrt(const Ball& a) {
  Ball result;
  arb_sqrtpos(result.get(), a.get(), working_bits);
  return result;
}

Ball max(const Ball& a, const Ball& b) {
  Ball result;
  arb_max(result.get(), a.get(), b.get(), working_bits);
  return result;
}

Ball min(const Ball& a, const Ball& b) {
  Ball result;
  arb_min(result.get(), a.get(), b.get(), working_bits);
  return result;
}

Ball power(const Ball& a, const Ball& exponent) {
  Ball size = abs(a), result;
  if (!arb_contains_zero(size.get())) {
    arb_pow(result.get(), size.get(), exponent.get(), working_bits);
    return result;
  }
  Float end;  // the logarithm needs numbers away from zero, so only the upper end is raised to the power
  arb_get_ubound_arf(end.get(), size.get(), working_bits);
  if (arf_is_zero(end.get())) return result;
  arb_set_arf(size.get(), end.get());
  arb_pow(result.get(), size.get(), exponent.get(), working_bits);
  return Ball::between(Ball(0), result);
}

BallMatrix::BallMatrix(const RowMatrix& exact) : BallMatrix(exact.rows(), exact.cols()) {
  for (Index k = 0; k < exact.size(); ++k) arb_set_d(x_->entries + k, exact.data()[k]);
}

Ball dot(arb_srcptr x, Index x_step, arb_srcptr y, Index y_step, Index count) {
  Ball result;
  arb_dot(result.get(), nullptr, 0, x, x_step, y, y_step, count, working_bits);
  return result;
}

}  // namespace attsvm::internal::proof
