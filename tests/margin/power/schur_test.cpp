// The equations for multipliers against dense rows, in double, by our own loops and by OpenBLAS, and in extended
// precision.
#include "margin/power/schur.h"

#include <Eigen/Cholesky>
#include <random>

#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using internal::Frame;
using internal::IndexList;
using internal::PowerRows;
using internal::PowerSchur;
using internal::PowerVector;

template <class Real>
void expect_solution(const MarginProblem& problem, NormFamily family, bool some, PowerSchur<Real>& schur) {
  SCOPED_TRACE(testing::Message() << problem.rows() << " rows, family " << static_cast<int>(family) << ", some "
                                  << some);
  PowerRows<Real> rows;
  rows.load(problem, family, Real(1));
  std::mt19937_64 random(5);
  const auto draw = [&](Index size) { return PowerVector<Real>(test::gaussian(size, 1, random).cast<Real>()); };
  Frame<Real> frame;
  frame.shape(family, rows.left(), rows.right());
  frame.take(draw(rows.unknowns()));
  const PowerVector<Real> F = draw(rows.unknowns()).cwiseAbs();
  IndexList picked;
  for (Index k = 0; k < rows.count(); k += some ? 3 : 1) picked.push(k);
  const PowerVector<Real> D = draw(picked.size()).cwiseAbs().array() + 1, right = draw(picked.size());
  ASSERT_TRUE(schur.form(rows, frame, F, D, some ? &picked : nullptr));
  PowerVector<Real> found = right, row, coordinates;
  schur.solve(found);
  Eigen::MatrixXd framed(picked.size(), rows.unknowns());
  for (Index k = 0; k < picked.size(); ++k) {
    rows.write(picked[k], row);
    frame.into(row, coordinates);
    framed.row(k) = coordinates.template cast<double>().transpose();
  }
  Eigen::MatrixXd G = framed * F.template cast<double>().asDiagonal() * framed.transpose();
  G.diagonal() += D.template cast<double>();
  const Eigen::VectorXd expected = G.llt().solve(right.template cast<double>());
  EXPECT_LE((found.template cast<double>() - expected).norm(), 1e-11 * expected.norm());
}

template <class Real>
void expect_solutions() {
  PowerSchur<Real> schur;
  for (const Index n : {2, 5, 40}) {  // 40: more rows than our own loops take
    const AttentionTask task = generate({.n = n, .T = 6, .d = 7, .dz = n == 5 ? 3 : 7}, 3).task;
    const MarginProblem problem = test::of_optimal_tokens(task);
    for (const NormFamily family : {NormFamily::entrywise, NormFamily::schatten}) {
      for (const bool some : {false, true}) expect_solution(problem, family, some, schur);
    }
  }
}

TEST(PowerSchur, InDouble) { expect_solutions<double>(); }

TEST(PowerSchur, InExtendedPrecision) { expect_solutions<long double>(); }

}  // namespace
}  // namespace attsvm
