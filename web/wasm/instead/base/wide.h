// Takes the place of src/base/wide.h, whose numbers come from Arb: these come from Boost, which is headers alone.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <utility>
#include <vector>

#include "attsvm/array.h"

using slong = long;

namespace attsvm::internal {

/// A number of kBits bits, for decisions that double cannot make. Results are rounded and have no error bound, so
/// answers found with them are candidates that a certificate has to prove.
class Wide {
 public:
  static constexpr slong kBits = 512;

  Wide() = default;
  Wide(double x) : value_(x) {}  // NOLINT: doubles are wide numbers

  Wide& operator+=(const Wide& y) { return value_ += y.value_, *this; }
  Wide& operator-=(const Wide& y) { return value_ -= y.value_, *this; }
  Wide& operator*=(const Wide& y) { return value_ *= y.value_, *this; }
  Wide& operator/=(const Wide& y) { return value_ /= y.value_, *this; }
  friend Wide operator+(Wide x, const Wide& y) { return std::move(x += y); }
  friend Wide operator-(Wide x, const Wide& y) { return std::move(x -= y); }
  friend Wide operator*(Wide x, const Wide& y) { return std::move(x *= y); }
  friend Wide operator/(Wide x, const Wide& y) { return std::move(x /= y); }
  friend Wide operator-(Wide x) { return x.value_ = -x.value_, std::move(x); }
  friend bool operator<(const Wide& x, const Wide& y) { return x.value_ < y.value_; }
  friend bool operator>(const Wide& x, const Wide& y) { return y < x; }
  friend bool operator<=(const Wide& x, const Wide& y) { return !(y < x); }

  void add_product(const Wide& x, const Wide& y) { value_ += x.value_ * y.value_; }
  /// Times 2^exponent, exactly.
  Wide shifted(slong exponent) const {
    Wide result;
    result.value_ = ldexp(value_, static_cast<int>(exponent));
    return result;
  }
  bool is_zero() const { return value_.is_zero(); }
  int sign() const { return value_.sign(); }
  /// e with |x| in [2^(e−1), 2^e); not for zero.
  slong exponent() const {
    int exponent = 0;
    frexp(value_, &exponent);
    return exponent;
  }
  double to_double() const { return value_.convert_to<double>(); }

  friend Wide abs(Wide x) { return x.value_ = boost::multiprecision::abs(x.value_), std::move(x); }
  friend Wide sqrt(const Wide& x) {
    Wide root;
    root.value_ = boost::multiprecision::sqrt(x.value_);
    return root;
  }
  friend Wide dot(const Wide* x, const Wide* y, Index n) {
    Wide sum;
    for (Index k = 0; k < n; ++k) sum.add_product(x[k], y[k]);
    return sum;
  }

 private:
  using Number = boost::multiprecision::number<
      boost::multiprecision::cpp_bin_float<kBits, boost::multiprecision::digit_base_2, void, std::int32_t>,
      boost::multiprecision::et_off>;
  Number value_ = 0;
};

using WideVector = std::vector<Wide>;

}  // namespace attsvm::internal
