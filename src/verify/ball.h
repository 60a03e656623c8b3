// Balls: real numbers with a proven error, by Arb. Operators round to the working precision of the thread.
#pragma once

#include "attsvm/array.h"
#include "base/arb.h"

namespace attsvm::internal::proof {

/// The highest precision, in bits, that is tried before a decision is given up.
inline constexpr slong kMostBits = 4096;

/// Sets the working precision of this thread, in bits, while it lives.
class WorkingBits {
 public:
  explicit WorkingBits(slong bits);
  ~WorkingBits();
  WorkingBits(const WorkingBits&) = delete;
  WorkingBits& operator=(const WorkingBits&) = delete;

  static slong now();

 private:
  slong before_;
};

/// An interval that is proven to contain a real number.
class Ball {
 public:
  Ball() { arb_init(x_); }
  Ball(double exact) {  // NOLINT(google-explicit-constructor): every double is a ball of radius 0
    arb_init(x_);
    arb_set_d(x_, exact);
  }
  Ball(const Ball& other) {
    arb_init(x_);
    arb_set(x_, other.x_);
  }
  Ball(Ball&& other) noexcept {
    arb_init(x_);
    arb_swap(x_, other.x_);
  }
  Ball& operator=(const Ball& other) {
    arb_set(x_, other.x_);
    return *this;
  }
  Ball& operator=(Ball&& other) noexcept {
    arb_swap(x_, other.x_);
    return *this;
  }
  ~Ball() { arb_clear(x_); }

  /// The interval from the lower end of `low` to the upper end of `high`.
  static Ball between(const Ball& low, const Ball& high);
  /// middle ± error; all real numbers if one of them is not finite.
  static Ball around(double middle, double error);
  static Ball of(const arb_t x);

  arb_ptr get() { return x_; }
  arb_srcptr get() const { return x_; }

  double lower() const;   ///< the lower end, rounded down
  double upper() const;   ///< the upper end, rounded up
  double middle() const;  ///< the midpoint, rounded
  bool is_zero() const { return arb_is_zero(x_) != 0; }

 private:
  arb_t x_;
};

Ball operator+(const Ball& a, const Ball& b);
Ball operator-(const Ball& a, const Ball& b);
Ball operator*(const Ball& a, const Ball& b);
Ball operator/(const Ball& a, const Ball& b);
Ball operator-(const Ball& a);
Ball abs(const Ball& a);
Ball sqrt(const Ball& a);  ///< of a number that is known to be ≥ 0: the part of the ball below zero is cut off
Ball max(const Ball& a, const Ball& b);
Ball min(const Ball& a, const Ball& b);
/// |a|^exponent, exponent > 0; a may contain zero.
Ball power(const Ball& a, const Ball& exponent);

inline bool surely_at_most(const Ball& a, const Ball& b) { return arb_le(a.get(), b.get()) != 0; }
inline bool surely_above(const Ball& a, const Ball& b) { return arb_gt(a.get(), b.get()) != 0; }

/// A matrix of balls.
class BallMatrix {
 public:
  BallMatrix(Index rows, Index columns) { arb_mat_init(x_, rows, columns); }
  explicit BallMatrix(const RowMatrix& exact);
  ~BallMatrix() { arb_mat_clear(x_); }
  BallMatrix(const BallMatrix&) = delete;
  BallMatrix& operator=(const BallMatrix&) = delete;

  Index rows() const { return arb_mat_nrows(x_); }
  Index columns() const { return arb_mat_ncols(x_); }
  Index size() const { return rows() * columns(); }
  arb_ptr at(Index i, Index j) { return arb_mat_entry(x_, i, j); }
  arb_srcptr at(Index i, Index j) const { return arb_mat_entry(x_, i, j); }
  arb_srcptr data() const { return x_->entries; }  ///< row after row
  arb_mat_struct* get() { return x_; }
  const arb_mat_struct* get() const { return x_; }

 private:
  arb_mat_t x_;
};

/// A vector of balls.
class BallVector {
 public:
  explicit BallVector(Index size) : size_(size), x_(_arb_vec_init(size)) {}
  ~BallVector() { _arb_vec_clear(x_, size_); }
  BallVector(const BallVector&) = delete;
  BallVector& operator=(const BallVector&) = delete;

  arb_ptr get() { return x_; }
  arb_srcptr get() const { return x_; }
  void set(Index first, const double* numbers, Index count) {
    for (Index k = 0; k < count; ++k) arb_set_d(x_ + first + k, numbers[k]);
  }

 private:
  Index size_;
  arb_ptr x_;
};

/// Σ x_k y_k, where x_k is x[k·x_step] and y_k is y[k·y_step].
Ball dot(arb_srcptr x, Index x_step, arb_srcptr y, Index y_step, Index count);

}  // namespace attsvm::internal::proof
