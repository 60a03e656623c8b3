#include "base/kernels/nuclear.h"

#include "base/kernels/dense.h"
#include "base/kernels/kernel_support.h"

namespace attsvm {
namespace {

using test::for_every_target;
using test::Numbers;
using test::Sum;

TEST(NuclearKernels, Multiply) {
  for_every_target([] {
    for (const auto& [rows, inner, cols] : {std::array<Index, 3>{4, 0, 3},
                                            {4, 1, 1},
                                            {8, 3, 2},
                                            {12, 5, 3},
                                            {16, 70, 4},
                                            {20, 7, 5},
                                            {36, 9, 0},
                                            {72, 13, 9},
                                            {64, 65, 66}}) {  // the last one is large enough for OpenBLAS
      SCOPED_TRACE(testing::Message() << rows << " by " << inner << " by " << cols);
      const Index ldb = inner + 3;
      const Numbers A(rows * inner, 1), B(ldb * cols, 2);
      Numbers C(rows * cols, 3);
      multiply(A.data(), rows, inner, B.data(), ldb, cols, C.data());
      for (Index j = 0; j < cols; ++j) {
        for (Index i = 0; i < rows; ++i) {
          Sum sum;
          for (Index f = 0; f < inner; ++f) sum.add(A[f * rows + i], B[j * ldb + f]);
          EXPECT_TRUE(sum.is(C[j * rows + i])) << i << " " << j;
        }
      }
    }
  });
}

TEST(NuclearKernels, MultiplyCoupled) {
  for_every_target([] {
    for (const auto& [P, Q] : {std::array<Index, 2>{4, 4}, {4, 12}, {20, 8}, {52, 48}}) {
      const Index N = P + Q;
      const Numbers A(P * Q, 1), T(N * N, 2);
      Numbers transposed(P * Q, 3), C(N * N, 4);
      multiply_coupled(A.data(), P, Q, T.data(), transposed.data(), C.data());
      for (Index j = 0; j < N; ++j) {
        for (Index i = 0; i < N; ++i) {
          Sum sum;
          for (Index f = 0; f < (i < P ? Q : P); ++f)
            sum.add(i < P ? A[f * P + i] : A[(i - P) * P + f], T[j * N + (i < P ? P + f : f)]);
          EXPECT_TRUE(sum.is(C[j * N + i])) << P << " " << Q << ": " << i << " " << j;
        }
      }
    }
  });
}

TEST(NuclearKernels, SchurMatrixOfItsParts) {
  for_every_target([] {
    for (Index rows = 1; rows <= 19; ++rows) {
      for (const bool pairs : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << (pairs ? ", two pairs of matrices" : ", one"));
        const Index ld = pad4(rows), ldg = ld + 4, features = 5, rank = 3, queries = 4;
        const Numbers across(ld * features, 1), T(features * rows, 2), low(ld * rank, 3), X(rank * rows, 4);
        const Numbers right_X(ld * queries, 5), right_T(ld * queries, 6), x(ld * queries, 7), t(ld * queries, 8);
        std::vector<Index> query;
        for (Index k = 0; k < rows; ++k) query.push_back(k * queries / rows);
        Numbers work(8 * ld, 9), G(ldg * rows, 10);
        const double factor = 0.75;
        schur_matrix({.rows = rows,
                      .ld = ld,
                      .features = features,
                      .rank = rank,
                      .across = across.data(),
                      .T = T.data(),
                      .low = pairs ? low.data() : nullptr,
                      .X = X.data(),
                      .right_X = right_X.data(),
                      .right_T = right_T.data(),
                      .x = x.data(),
                      .t = t.data(),
                      .query = query.data()},
                     factor, work.data(), G.data(), ldg);
        for (Index l = 0; l < rows; ++l) {
          for (Index k = l; k < rows; ++k) {
            const Index of_k = query[static_cast<std::size_t>(k)] * ld, of_l = query[static_cast<std::size_t>(l)] * ld;
            long double by_T = 0, by_X = 0;
            for (Index f = 0; f < features; ++f)
              by_T += static_cast<long double>(across[f * ld + k]) * T[l * features + f];
            for (Index f = 0; f < rank; ++f) by_X += static_cast<long double>(low[f * ld + k]) * X[l * rank + f];
            const long double alone = by_T * right_X[of_l + k];
            const long double expected = pairs ? alone + by_X * right_T[of_l + k] +
                                                     static_cast<long double>(x[of_l + k]) * t[of_k + l] +
                                                     static_cast<long double>(t[of_l + k]) * x[of_k + l]
                                               : 2 * (alone + static_cast<long double>(t[of_l + k]) * t[of_k + l]);
            EXPECT_NEAR(G[l * ldg + k], static_cast<double>(factor * expected), 1e-14) << k << " " << l;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace attsvm
