#include "attsvm/norm.h"

#include <cmath>

#include "linear_algebra.h"
#include "support.h"

namespace attsvm {
namespace {

TEST(Norm, NamesReadBack) {
  for (const char* name :
       {"fro", "nuc", "spec", "max", "l1", "lp:1.5", "lp:8", "lp:1.0000001", "schatten:1.5", "schatten:100"})
    EXPECT_EQ(Norm::parse(name).name(), name);
  for (const char* name : {"", "lp", "lp:", "lp:0.99", "lp:nan", "lp:2x", "lp:-3", "lp:-inf", "nuc ", "schatten",
                           "schatten:0", "inf", "lp:+2"})
    test::expect_refusal([&] { Norm::parse(name); }, {"norm"});
}

TEST(Norm, FamiliesMeet) {
  EXPECT_EQ(Norm::parse("lp:2"), Norm::frobenius());
  EXPECT_EQ(Norm::parse("schatten:2"), Norm::frobenius());
  EXPECT_EQ(Norm::parse("lp:inf"), Norm::largest());
  EXPECT_EQ(Norm::parse("lp:1"), Norm::l1());
  EXPECT_EQ(Norm::parse("schatten:inf"), Norm::spectral());
  EXPECT_EQ(Norm::parse("schatten:1"), Norm::nuclear());
  for (const char* name : {"fro", "nuc", "spec", "max", "l1", "lp:3", "schatten:3"})
    EXPECT_EQ(Norm::parse(name).dual().dual(), Norm::parse(name)) << name;
}

TEST(Norm, DualNormsPair) {
  const RowMatrix W = (RowMatrix(2, 3) << 1, -2, 3, 0.5, 4, -1).finished();
  EXPECT_NEAR(Norm::frobenius().of(W), W.norm(), 1e-15 * W.norm());
  EXPECT_NEAR(Norm::entrywise(2).of(W), W.norm(), 1e-15 * W.norm());
  EXPECT_NEAR(Norm::entrywise(4).of(W), std::pow(W.array().pow(4).sum(), 0.25), 1e-14);
  const Eigen::VectorXd sigma = test::svd_of(W).sigma;
  EXPECT_NEAR(Norm::nuclear().of(W), sigma.sum(), 1e-14);
  EXPECT_NEAR(Norm::nuclear().dual_of(W), sigma(0), 1e-14);
  EXPECT_NEAR(Norm::spectral().of(W), sigma(0), 1e-14);
  EXPECT_NEAR(Norm::schatten(3).of(W), std::cbrt(sigma.array().cube().sum()), 1e-14);
  EXPECT_EQ(Norm::largest().of(W), 4);
  EXPECT_EQ(Norm::largest().dual_of(W), 11.5);
  EXPECT_EQ(Norm::l1().of(W), 11.5);
  for (const double p : {1.5, 3.0}) {  // Hölder is tight at sign(W)|W|^{p−1}
    const RowMatrix A = (W.array().sign() * W.array().abs().pow(p - 1)).matrix();
    const Norm norm = Norm::entrywise(p);
    EXPECT_NEAR(norm.of(W) * norm.dual_of(A), W.cwiseProduct(A).sum(), 1e-13 * W.cwiseProduct(A).sum());
  }
  EXPECT_EQ(Norm::nuclear().of(RowMatrix::Zero(3, 2)), 0);
}

}  // namespace
}  // namespace attsvm
