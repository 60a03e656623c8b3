#include <algorithm>

#include "base/refuse.h"
#include "verify/arithmetic.h"

namespace attsvm::internal::proof {
namespace {

constexpr std::size_t kBlock = 64;  // queries, and tokens, that are multiplied at a time

class BallArithmetic final : public Arithmetic {
 public:
  BallArithmetic(const Question& question, const StoredSolution& claim, const Norm& norm)
      : question_(question), claim_(claim), norm_(norm), d_(question.d()), dz_(question.dz()), W_(claim.W) {}

  std::string name() const override { return fmt::format("ball, {} bits", WorkingBits::now()); }

  void read_rows(const std::function<void(std::size_t, const Ball&)>& visit) override {
    const auto& groups = question_.groups();
    BallVector keep(d_), drop(d_);
    for (std::size_t first = 0; first < groups.size(); first += kBlock) {
      const std::size_t count = std::min(kBlock, groups.size() - first);
      const auto columns = static_cast<Index>(count);
      BallMatrix Z(dz_, columns), U(d_, columns);
      for (Index j = 0; j < columns; ++j) {
        const Index query = groups[first + static_cast<std::size_t>(j)].query;
        for (Index b = 0; b < dz_; ++b) arb_set_d(Z.at(b, j), question_.zeta(query, b));
      }
      arb_mat_mul(U.get(), W_.get(), Z.get(), WorkingBits::now());
      for (Index j = 0; j < columns; ++j)
        read_group(groups[first + static_cast<std::size_t>(j)], U.at(0, j), columns, keep, drop, visit);
    }
  }

  Ball norm_of_W() override {
    const Power power = power_of(norm_);
    return norm_.is_entrywise() ? power_norm(W_, power) : spectrum_of_W().schatten_norm(power);
  }

  Ball frobenius_of_W() override { return frobenius_norm(W_); }

  Ball dual_norm_of_A() override {
    const Power power = dual_power_of(norm_);
    return norm_.is_entrywise() ? power_norm(combination(), power) : prove_spectrum(combination()).schatten_norm(power);
  }

  Ball frobenius_of_A() override { return frobenius_norm(combination()); }

  Ball product_defect() override {
    const BallMatrix K(claim_.K), Q(RowMatrix(claim_.Q.transpose()));
    BallMatrix product(d_, dz_);
    arb_mat_mul(product.get(), K.get(), Q.get(), WorkingBits::now());
    return largest_difference(product, W_);
  }

  Ball balance_defect() override {
    const Index r = claim_.K.cols();
    BallMatrix left(r, r), right(r, r);
    arb_mat_mul(left.get(), BallMatrix(RowMatrix(claim_.K.transpose())).get(), BallMatrix(claim_.K).get(),
                WorkingBits::now());
    arb_mat_mul(right.get(), BallMatrix(RowMatrix(claim_.Q.transpose())).get(), BallMatrix(claim_.Q).get(),
                WorkingBits::now());
    return largest_difference(left, right);
  }

  SpectralProof spectrum_of_W() override {
    if (!spectrum_) spectrum_ = prove_spectrum(W_);
    return *spectrum_;
  }

 private:
  /// Visits the rows of one query; u is W ζ, with entries `step` apart. Multiplies each token by u and subtracts the
  /// products. The differences may cancel, but there are bits enough for that, and equal tokens give exactly 0.
  void read_group(const Group& group, arb_srcptr u, Index step, BallVector& keep, BallVector& drop,
                  const std::function<void(std::size_t, const Ball&)>& visit) const {
    const Row& head = question_.rows()[group.first];
    const double* kept = question_.token(head, head.keep);
    keep.set(0, kept, d_);
    const Ball kept_value = Ball(question_.sign(head)) * dot(keep.get(), 1, u, step, d_);
    for (std::size_t k = group.first; k < group.first + group.count; ++k) {
      const Row& row = question_.rows()[k];
      if (row.drop < 0) {
        visit(k, kept_value);
        continue;
      }
      const double* dropped = question_.token(row, row.drop);
      drop.set(0, dropped, d_);
      Ball value = kept_value - dot(drop.get(), 1, u, step, d_);
      if (arb_contains_zero(value.get()) && std::equal(kept, kept + d_, dropped)) value = Ball(0);
      visit(k, value);
    }
  }

  /// A(dual) = Σ_i g_i ζ_iᵀ with g_i = Σ_k dual_k δ_k; queries without multipliers are skipped.
  const BallMatrix& combination() {
    if (A_) return *A_;
    A_ = std::make_unique<BallMatrix>(d_, dz_);
    std::vector<const Group*> weighted;
    for (const Group& group : question_.groups()) {
      const auto* weight = claim_.dual.data() + group.first;
      if (std::any_of(weight, weight + group.count, [](double x) { return x != 0; })) weighted.push_back(&group);
    }
    BallVector tokens(static_cast<Index>(kBlock) * d_), weights(static_cast<Index>(kBlock));
    BallMatrix product(d_, dz_);
    for (std::size_t first = 0; first < weighted.size(); first += kBlock) {
      const auto count = static_cast<Index>(std::min(kBlock, weighted.size() - first));
      BallMatrix G(d_, count), Z(count, dz_);
      for (Index j = 0; j < count; ++j) {
        const Group& group = *weighted[first + static_cast<std::size_t>(j)];
        weigh(group, G.at(0, j), count, tokens, weights);
        for (Index b = 0; b < dz_; ++b) arb_set_d(Z.at(j, b), question_.zeta(group.query, b));
      }
      arb_mat_mul(product.get(), G.get(), Z.get(), WorkingBits::now());
      arb_mat_add(A_->get(), A_->get(), product.get(), WorkingBits::now());
    }
    return *A_;
  }

  /// g = (Σ dual_k) x_keep − Σ dual_k x_drop(k), written to entries `step` apart.
  void weigh(const Group& group, arb_ptr g, Index step, BallVector& tokens, BallVector& weights) const {
    const Row& head = question_.rows()[group.first];
    Ball total;
    for (std::size_t k = group.first; k < group.first + group.count; ++k) total = total + Ball(claim_.dual[k]);
    total = Ball(question_.sign(head)) * total;
    const double* kept = question_.token(head, head.keep);
    for (Index a = 0; a < d_; ++a) arb_mul(g + a * step, total.get(), Ball(kept[a]).get(), WorkingBits::now());
    if (head.drop < 0) return;
    Index packed = 0;
    const auto flush = [&] {
      for (Index a = 0; a < d_; ++a) {
        arb_dot(g + a * step, g + a * step, 1, tokens.get() + a, d_, weights.get(), 1, packed, WorkingBits::now());
      }
      packed = 0;
    };
    for (std::size_t k = group.first; k < group.first + group.count; ++k) {
      if (claim_.dual[k] == 0) continue;
      tokens.set(packed * d_, question_.token(head, question_.rows()[k].drop), d_);
      arb_set_d(weights.get() + packed, claim_.dual[k]);
      if (++packed == static_cast<Index>(kBlock)) flush();
    }
    flush();
  }

  static Ball largest_difference(const BallMatrix& a, const BallMatrix& b) {
    Ball largest;
    for (Index k = 0; k < a.size(); ++k) {
      Ball difference;
      arb_sub(difference.get(), a.data() + k, b.data() + k, WorkingBits::now());
      largest = max(largest, abs(difference));
    }
    return largest;
  }

  const Question& question_;
  const StoredSolution& claim_;
  const Norm& norm_;
  Index d_, dz_;
  BallMatrix W_;
  std::unique_ptr<BallMatrix> A_;
  std::optional<SpectralProof> spectrum_;
};

}  // namespace

std::unique_ptr<Arithmetic> ball_arithmetic(const Question& question, const StoredSolution& claim, const Norm& norm) {
  return std::make_unique<BallArithmetic>(question, claim, norm);
}

}  // namespace attsvm::internal::proof
