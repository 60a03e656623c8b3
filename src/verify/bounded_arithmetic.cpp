#include <algorithm>
#include <cmath>

#include "verify/arithmetic.h"

// A sum of n products, in any order, has an error of at most γ Σ |terms| with γ = n u / (1 − n u), u the unit roundoff.
// The factors below are twice that for a few terms more, which covers the rounding of the bounds themselves. kSmall,
// which is added to sums of absolute values, covers products below the range of doubles.

namespace attsvm::internal::proof {
namespace {

using Long = long double;
using LongMatrix = Eigen::Matrix<Long, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kSmall = 0x1p-1000;
constexpr Index kFew = 16;
constexpr Index kQueryBlock = 64;  // queries that are multiplied at a time

double gamma_double(Index terms) { return static_cast<double>(terms + kFew) * 0x1p-52; }
Long gamma_long(Index terms) { return static_cast<Long>(terms + kFew) * 0x1p-63L; }

Ball exactly(Long x) {
  int exponent = 0;
  const Long fraction = std::frexp(x, &exponent);
  const auto high = static_cast<double>(fraction);
  Ball result = Ball(high) + Ball(static_cast<double>(fraction - static_cast<Long>(high)));
  arb_mul_2exp_si(result.get(), result.get(), exponent);
  return result;
}

/// x (1 ± relative) ± absolute
Ball widened(const Ball& x, double relative, const Ball& absolute) {
  Ball result = x;
  arb_add_error(result.get(), (abs(x) * Ball(relative)).get());
  arb_add_error(result.get(), absolute.get());
  return result;
}

/// The largest absolute row sum, enlarged by a bound on its rounding.
Ball row_sum(const Eigen::MatrixXd& M) {
  return widened(Ball(M.cwiseAbs().rowwise().sum().maxCoeff()), gamma_double(M.cols()), Ball(kSmall));
}

/// A bound on ‖MᵀM − I‖ for M with columns of length about one; throws Undecided if they are not.
Ball defect(const Eigen::MatrixXd& M) {
  Eigen::MatrixXd square = M.transpose() * M;
  square.diagonal().array() -= 1;
  const auto columns = static_cast<double>(M.cols());
  const Ball rounding = Ball(columns) * Ball(2 * gamma_double(M.rows()));
  const Ball result = widened(row_sum(square), 0, rounding);
  if (!surely_at_most(result, Ball(0.1))) throw Undecided{"singular vectors"};
  return result;
}

/// A bound on the Frobenius norm off the diagonal of a matrix that differs from M by at most `error` in that norm.
Ball off_diagonal(Eigen::MatrixXd M, const Ball& error) {
  M.diagonal().setZero();
  return widened(Ball(M.norm()), gamma_double(M.size()), error + Ball(kSmall));
}

/// Proves the spectrum of a matrix from D: doubles of size about one that differ from the matrix by at most `error`
/// (Frobenius norm).
SpectralProof prove_spectrum(const RowMatrix& D, const Ball& error) {
  const SingularVectors vectors = singular_vectors(D);
  SpectralProof proof{.defect_u = defect(vectors.U), .defect_v = defect(vectors.V)};
  const Eigen::MatrixXd Y = vectors.transposed ? Eigen::MatrixXd(D.transpose() * vectors.V) : D * vectors.V;
  const Index m = Y.rows(), n = Y.cols();
  const Ball size = widened(Ball(D.norm()), gamma_double(D.size()), Ball(kSmall));
  // Columns of U and V are no longer than 1.1: their defects are at most 0.1.
  const Ball column_error = Ball(1.1) * (Ball(gamma_double(std::max(m, n))) * size + error) + Ball(kSmall);
  for (Index j = 0; j < n; ++j) {
    const double column = Y.col(j).norm();
    proof.columns.push_back(max(Ball(0), widened(Ball(column), gamma_double(m), column_error)));
    const Ball inner_error = Ball(1.1) * (Ball(gamma_double(m) * column) + column_error);
    proof.inner.push_back(widened(Ball(vectors.U.col(j).dot(Y.col(j))), 0, inner_error));
  }
  const Ball all = widened(Ball(Y.norm()), gamma_double(Y.size()), Ball(kSmall));
  const Ball all_error = sqrt(Ball(static_cast<double>(n))) * column_error;
  const Ball square_error =
      Ball(gamma_double(m)) * all * all + Ball(2) * all * all_error + all_error * all_error + Ball(kSmall);
  const Eigen::MatrixXd square = Y.transpose() * Y;
  proof.coupling = off_diagonal(square, square_error);
  proof.top = Ball::between(proof.columns.front(), sqrt(widened(row_sum(square), 0, square_error)));
  return proof;
}

void scale(SpectralProof& proof, int exponent) {
  for (Ball& column : proof.columns) arb_mul_2exp_si(column.get(), column.get(), exponent);
  for (Ball& product : proof.inner) arb_mul_2exp_si(product.get(), product.get(), exponent);
  arb_mul_2exp_si(proof.top.get(), proof.top.get(), exponent);
  arb_mul_2exp_si(proof.coupling.get(), proof.coupling.get(), 2 * exponent);
}

/// A power of two near the largest entry.
int exponent_of(const LongMatrix& A) {
  int exponent = 0;
  std::frexp(A.cwiseAbs().maxCoeff(), &exponent);
  return exponent;
}

class BoundedArithmetic final : public Arithmetic {
 public:
  BoundedArithmetic(const Question& question, const StoredSolution& claim, const Norm& norm,
                    Contributions contributions)
      : question_(question),
        claim_(claim),
        norm_(norm),
        contributions_(std::move(contributions)),
        d_(question.d()),
        dz_(question.dz()) {
    if (contributions_) return;
    contributions_ = [this](const std::function<void(const Contribution&)>& use) {
      Contribution one;
      for (const Group& group : question_.groups()) {
        if (contribute(question_, claim_, group, one)) use(one);
      }
    };
  }

  std::string name() const override { return "double with error bounds"; }

  void read_rows(const std::function<void(std::size_t, const Ball&)>& visit) override {
    const auto& groups = question_.groups();
    const RowMatrix size = claim_.W.cwiseAbs();
    for (std::size_t first = 0; first < groups.size(); first += kQueryBlock) {
      const Index count = std::min(kQueryBlock, static_cast<Index>(groups.size() - first));
      Eigen::MatrixXd Z(dz_, count);
      for (Index j = 0; j < count; ++j) {
        for (Index b = 0; b < dz_; ++b) Z(b, j) = question_.zeta(groups[first + static_cast<std::size_t>(j)].query, b);
      }
      const Eigen::MatrixXd U = claim_.W * Z;
      const Eigen::MatrixXd bounds = (size * Z.cwiseAbs()).array() + kSmall;
      for (Index j = 0; j < count; ++j)
        read_group(groups[first + static_cast<std::size_t>(j)], U.col(j), bounds.col(j), visit);
    }
  }

  Ball norm_of_W() override {
    const Power power = power_of(norm_);
    return norm_.is_entrywise() ? power_norm(BallMatrix(claim_.W), power) : spectrum_of_W().schatten_norm(power);
  }

  Ball frobenius_of_W() override { return frobenius_norm(BallMatrix(claim_.W)); }

  Ball dual_norm_of_A() override {
    combine();
    if (norm_.is_frobenius()) return frobenius_of_A();
    const Power power = dual_power_of(norm_);
    if (!norm_.is_entrywise()) return schatten_norm_of_A(power);
    BallMatrix A(d_, dz_);
    for (Index k = 0; k < A_.size(); ++k) arb_set(A.at(k / dz_, k % dz_), exactly(A_.data()[k]).get());
    // ‖E‖_q ≤ √N ‖E‖_F for q < 2, ≤ ‖E‖_F else.
    const Ball factor = norm_.power > 2 ? sqrt(Ball(static_cast<double>(A_.size()))) : Ball(1);
    return max(Ball(0), widened(power_norm(A, power), 0, factor * A_error_));
  }

  Ball frobenius_of_A() override {
    combine();
    const Ball norm = exactly(std::sqrt(A_.squaredNorm()));
    return max(Ball(0), widened(norm, static_cast<double>(gamma_long(A_.size())), A_error_));
  }

  Ball product_defect() override {
    const RowMatrix product = claim_.K * claim_.Q.transpose();
    const Ball rounding =
        Ball(gamma_double(claim_.K.cols())) * Ball(longest_row(claim_.K)) * Ball(longest_row(claim_.Q));
    return difference(product, claim_.W, rounding);
  }

  Ball balance_defect() override {
    const RowMatrix left = claim_.K.transpose() * claim_.K, right = claim_.Q.transpose() * claim_.Q;
    const double k = longest_row(claim_.K.transpose()), q = longest_row(claim_.Q.transpose());
    const Ball rounding = Ball(gamma_double(std::max(d_, dz_))) * (Ball(k) * Ball(k) + Ball(q) * Ball(q));
    return difference(left, right, rounding);
  }

  SpectralProof spectrum_of_W() override {
    if (!spectrum_) {
      const int exponent = exponent_of(claim_.W.cast<Long>());
      const RowMatrix D = claim_.W.unaryExpr([&](double x) { return std::ldexp(x, -exponent); });
      spectrum_ = prove_spectrum(D, Ball(kSmall));  // scaling is exact except for entries below 2^-1022 of the largest
      scale(*spectrum_, exponent);
    }
    return *spectrum_;
  }

 private:
  void read_group(const Group& group, const Eigen::Ref<const Eigen::VectorXd>& u,
                  const Eigen::Ref<const Eigen::VectorXd>& bound,
                  const std::function<void(std::size_t, const Ball&)>& visit) const {
    const double gamma = gamma_double(d_ + dz_);
    const Row& head = question_.rows()[group.first];
    const ConstVector keep(question_.token(head, head.keep), d_);
    Eigen::VectorXd delta = question_.sign(head) * keep;
    for (std::size_t k = group.first; k < group.first + group.count; ++k) {
      const Row& row = question_.rows()[k];
      if (row.drop >= 0) delta = keep - ConstVector(question_.token(row, row.drop), d_);
      visit(k, Ball::around(delta.dot(u), gamma * (delta.cwiseAbs().dot(bound) + kSmall)));
    }
  }

  /// A(dual) in long double, and a bound on its error: γ Σ |dual_k| ‖δ_k‖ ‖ζ_k‖. Products of three doubles are well
  /// within the range of long doubles.
  void combine() {
    if (A_.size() > 0) return;
    A_.setZero(d_, dz_);
    Long size = 0;
    Index terms = 0;
    using LongVector = Eigen::Matrix<Long, Eigen::Dynamic, 1>;
    contributions_([&](const Contribution& one) {
      const LongVector zeta = ConstVector(one.zeta.data(), dz_).cast<Long>();
      A_.noalias() += Eigen::Map<const LongVector>(one.g.data(), d_) * zeta.transpose();
      size += one.sizes * zeta.norm();
      terms += one.terms;
    });
    A_error_ = exactly(2 * gamma_long(2 * terms) * size);
  }

  Ball schatten_norm_of_A(const Power& power) {
    const int exponent = exponent_of(A_);
    const RowMatrix D = A_.unaryExpr([&](Long x) { return std::ldexp(x, -exponent); }).cast<double>();
    Ball error = A_error_;
    arb_mul_2exp_si(error.get(), error.get(), -exponent);
    SpectralProof proof = prove_spectrum(D, error + Ball(0x1p-52 * D.norm()) + Ball(kSmall));
    scale(proof, exponent);
    return proof.schatten_norm(power);
  }

  static double longest_row(const RowMatrix& M) { return M.size() == 0 ? 0 : M.rowwise().norm().maxCoeff(); }

  static Ball difference(const RowMatrix& a, const RowMatrix& b, const Ball& rounding) {
    if (a.size() == 0) return Ball(0);
    const double largest = a.cwiseAbs().maxCoeff() + b.cwiseAbs().maxCoeff();
    return widened(Ball((a - b).cwiseAbs().maxCoeff()), 0, rounding + Ball(0x1p-50 * largest) + Ball(kSmall));
  }

  const Question& question_;
  const StoredSolution& claim_;
  const Norm& norm_;
  Contributions contributions_;
  Index d_, dz_;
  LongMatrix A_;
  Ball A_error_;
  std::optional<SpectralProof> spectrum_;
};

}  // namespace

bool contribute(const Question& question, const StoredSolution& claim, const Group& group, Contribution& out) {
  const auto d = static_cast<std::size_t>(question.d());
  out.g.assign(d, 0);
  out.sizes = 0;
  out.terms = 0;
  for (std::size_t k = group.first; k < group.first + group.count; ++k) {
    if (claim.dual[k] == 0) continue;
    const Row& row = question.rows()[k];
    const double* keep = question.token(row, row.keep);
    const double* drop = row.drop < 0 ? nullptr : question.token(row, row.drop);
    const Long weight = static_cast<Long>(question.sign(row)) * claim.dual[k];
    Long square = 0;
    for (std::size_t a = 0; a < d; ++a) {
      const Long entry = static_cast<Long>(keep[a]) - (drop == nullptr ? 0.0L : static_cast<Long>(drop[a]));
      out.g[a] += weight * entry;
      square += entry * entry;
    }
    out.sizes += std::abs(weight) * std::sqrt(square);
    ++out.terms;
  }
  if (out.sizes == 0) return false;
  out.zeta.resize(static_cast<std::size_t>(question.dz()));
  for (Index b = 0; b < question.dz(); ++b) out.zeta[static_cast<std::size_t>(b)] = question.zeta(group.query, b);
  return true;
}

std::unique_ptr<Arithmetic> bounded_arithmetic(const Question& question, const StoredSolution& claim, const Norm& norm,
                                               Contributions contributions) {
  return std::make_unique<BoundedArithmetic>(question, claim, norm, std::move(contributions));
}

}  // namespace attsvm::internal::proof
