#include "margin/certify/row_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/kernels/stream.h"
#include "base/limits.h"
#include "margin/rows/difference.h"

namespace attsvm::internal {
namespace {

// If terms are this much larger than their sum, the arithmetic is not precise enough. By hand.
constexpr double kFastCancellation = 1e4, kExtendedCancellation = 1e6;
constexpr Index kWideProducts = 5'000'000;  // most wide multiplications in one pass: 0.3 s

}  // namespace

double RowMeasure::error() const {
  const auto terms = static_cast<double>(terms_);
  switch (arithmetic_) {
    case Arithmetic::fast:
      return terms * kEpsilon * size_;
    case Arithmetic::extended:
      return terms * static_cast<double>(std::numeric_limits<Real>::epsilon()) * size_;
    case Arithmetic::wide:
      return kEpsilon * norm_;  // it is rounded to double
  }
  throw std::logic_error("unknown arithmetic");
}

double RowMeasure::value_error() const {
  constexpr auto kExtended = static_cast<double>(std::numeric_limits<Real>::epsilon());
  constexpr double kTerms = 4;  // rounding errors of a sum, in units of its size
  if (arithmetic_ == Arithmetic::wide) return kEpsilon;
  return kEpsilon + kTerms * (arithmetic_ == Arithmetic::fast ? kEpsilon : kExtended) * reach_;
}

bool RowMeasure::suffices(const MarginProblem& problem, double enough) const {
  if (norm_ + error() <= enough) return true;
  if (arithmetic_ == Arithmetic::fast) return size_ <= kFastCancellation * norm_ && reach_ <= kFastCancellation;
  if (size_ <= kExtendedCancellation * norm_ && reach_ <= kExtendedCancellation) return true;
  const auto groups = static_cast<Index>(problem.groups().size());
  return problem.d() * (problem.rows() + 2 * groups * problem.dz()) > kWideProducts;
}

void RowMeasure::take(const MarginProblem& problem, const RowSums& sums, const RowMatrix& W,
                      const Eigen::VectorXd& dual, double enough) {
  terms_ = sums.groups() + 4;
  Index longest = 0;
  for (const MarginGroup& group : problem.groups()) longest = std::max(longest, group.rows);
  terms_ += static_cast<Index>(sums.largest(static_cast<double>(longest)));
  if (arithmetic_ == Arithmetic::fast) {
    take_fast(problem, sums, W, dual);
    if (suffices(problem, enough)) return;
    arithmetic_ = Arithmetic::extended;
  }
  if (sums.shared()) throw NeedsAllRows{};
  if (arithmetic_ == Arithmetic::extended) {
    take_extended(problem, W, dual);
    if (suffices(problem, enough)) return;
    arithmetic_ = Arithmetic::wide;
  }
  take_wide(problem, W, dual);
}

void RowMeasure::gather(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual,
                        std::size_t begin, std::size_t end, Share& share) {
  const Index d = problem.d(), dz = problem.dz();
  share.u.setZero(pad4(d));
  share.g.resize(kOuters, pad4(d));
  share.z.setZero(kOuters, pad4(dz));
  share.A.setZero(d, pad4(dz));
  share.size = share.reach = 0;
  std::array<const double*, kOuters> g{}, z{};
  Index waiting = 0;
  const auto flush = [&] {
    add_outers(g.data(), z.data(), waiting, d, share.z.cols(), share.A.data());
    waiting = 0;
  };
  for (const MarginGroup& group : problem.groups().subspan(begin, end - begin)) {
    row_dots(W.data(), d, dz, group.z, share.u.data());
    const double* weights = dual.data() + group.first_row;
    double* squares = squares_.data() + group.first_row;
    double* sum = share.g.row(waiting).data();
    measure_rows({group.X, d, group.keep, group.sign, problem.drops(group).data(), group.rows}, share.u.data(), weights,
                 values_.data() + group.first_row, squares, sum);
    double group_size = 0, longest = 0;
    for (Index k = 0; k < group.rows; ++k) {
      longest = std::max(longest, squares[k]);
      if (weights[k] != 0) group_size += std::abs(weights[k]) * std::sqrt(squares[k]);
    }
    double* zeta = share.z.row(waiting).data();
    std::copy_n(group.z, dz, zeta);
    const double z_norm = share.z.row(waiting).norm();
    share.reach = std::max(share.reach, std::sqrt(longest) * z_norm);
    if (group_size == 0) continue;
    share.size += group_size * z_norm;
    g[static_cast<std::size_t>(waiting)] = sum;
    z[static_cast<std::size_t>(waiting)] = zeta;
    if (++waiting == kOuters) flush();
  }
  flush();
}

void RowMeasure::take_fast(const MarginProblem& problem, const RowSums& sums, const RowMatrix& W,
                           const Eigen::VectorXd& dual) {
  constexpr Index kRowsAShare = 4096, kMostShares = 8;
  // Shares of a segment, and segments at a time.
  const Index wanted = std::clamp<Index>(sums.rows() / kRowsAShare, 1, kMostShares),
              shares = std::max<Index>(1, wanted / sums.all_segments()),
              wave = std::min(sums.segments(), std::max<Index>(kMostShares, threads_.count()) / shares);
  values_.resize(problem.rows());
  squares_.resize(problem.rows());
  if (static_cast<Index>(shares_.size()) < wave * shares) shares_.resize(static_cast<std::size_t>(wave * shares));
  std::vector<double> sizes(static_cast<std::size_t>(sums.segments()));
  reach_ = 0;
  const auto make = [&](Index from, Index to, double* out) {
    const Index count = (to - from) * shares;
    const auto work = [&](std::int64_t k) {
      const Index segment = from + k / shares, share = k % shares, first = sums.begin(segment),
                  groups = sums.end(segment) - first;
      gather(problem, W, dual, static_cast<std::size_t>(first + groups * share / shares),
             static_cast<std::size_t>(first + groups * (share + 1) / shares), shares_[static_cast<std::size_t>(k)]);
    };
    if (count == 1) {
      work(0);  // avoids the cost of starting the threads
    } else {
      threads_.for_each(count, work);
    }
    for (Index segment = from; segment < to; ++segment) {
      const Share* share = shares_.data() + (segment - from) * shares;
      Eigen::Map<RowMatrix> A(out + (segment - from) * share->A.size(), share->A.rows(), share->A.cols());
      double& size = sizes[static_cast<std::size_t>(segment)];
      A = share->A;
      size = share->size;
      reach_ = std::max(reach_, share->reach);
      for (Index s = 1; s < shares; ++s) {
        A += share[s].A;
        size += share[s].size;
        reach_ = std::max(reach_, share[s].reach);
      }
    }
  };
  A_.resize(problem.d(), pad4(problem.dz()));
  sums.matrix<double>(A_.size(), wave, threads_, make, A_.data());
  size_ = sums.number<double>([&](Index segment) { return sizes[static_cast<std::size_t>(segment)]; });
  norm_ = norm_of(A_);
  reach_ = sums.largest(reach_) * norm_of(W);
}

void RowMeasure::take_extended(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual) {
  const Index d = problem.d(), dz = problem.dz();
  values_.resize(problem.rows());
  wide_u_.resize(d);
  wide_g_.resize(d);
  wide_delta_.resize(d);
  wide_A_.setZero(d, dz);
  Real size = 0, reach = 0;
  for (const MarginGroup& group : problem.groups()) {
    const auto z = ConstVector(group.z, dz).cast<Real>();
    wide_u_.noalias() = W.cast<Real>() * z;
    wide_g_.setZero();
    Real group_size = 0, longest = 0;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      row_difference(problem, group, k, wide_delta_.data());
      Real value = 0, square = 0;
      for (Index j = 0; j < d; ++j) {
        value += wide_delta_(j) * wide_u_(j);
        square += wide_delta_(j) * wide_delta_(j);
        wide_g_(j) += dual(k) * wide_delta_(j);
      }
      values_(k) = static_cast<double>(value);
      group_size += std::abs(static_cast<Real>(dual(k))) * std::sqrt(square);
      longest = std::max(longest, square);
    }
    const Real z_norm = z.norm();
    size += group_size * z_norm;
    reach = std::max(reach, std::sqrt(longest) * z_norm);
    wide_A_.noalias() += wide_g_ * z.transpose();
  }
  size_ = static_cast<double>(size);
  reach_ = static_cast<double>(reach) * norm_of(W);
  norm_ = static_cast<double>(wide_A_.norm());
  A_ = wide_A_.cast<double>();
}

void RowMeasure::take_wide(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual) {
  const Index d = problem.d(), dz = problem.dz();
  rows_.load(problem);
  WideVector lambda(at(rows_.count())), sum, value, weights(at(d * dz));
  for (Index k = 0; k < rows_.count(); ++k) lambda[at(k)] = Wide(dual(rows_.row(k))).shifted(rows_.exponent(k));
  rows_.weigh(lambda, sum);
  for (Index k = 0; k < d * dz; ++k) weights[at(k)] = W.data()[k];
  rows_.values(weights, value);
  values_.setZero(problem.rows());
  for (Index k = 0; k < rows_.count(); ++k) values_(rows_.row(k)) = value[at(k)].shifted(rows_.exponent(k)).to_double();
  norm_ = sqrt(dot(sum.data(), sum.data(), d * dz)).to_double();
  A_.resize(d, dz);
  for (Index k = 0; k < d * dz; ++k) A_.data()[k] = sum[at(k)].to_double();
}

}  // namespace attsvm::internal
