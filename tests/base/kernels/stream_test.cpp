#include "base/kernels/stream.h"

#include "base/kernels/kernel_support.h"

namespace attsvm {
namespace {

using test::for_every_target;
using test::Guarded;
using test::Numbers;
using test::Sum;

/// Every size up to 70, and sizes from which rows are long for any width of vectors.
std::vector<Index> sizes() {
  std::vector<Index> list;
  for (Index d = 0; d <= 70; ++d) list.push_back(d);
  list.insert(list.end(), {127, 128, 131, 201});
  return list;
}

template <class T>
void expect_dots_and_combinations() {
  for_every_target([] {
    for (const Index d : sizes()) {
      for (const Index rows : {0, 1, 2, 3, 4, 5, 9}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << d);
        const Guarded<T> X(rows * d, 1), u(d, 2), c(rows, 3);
        Guarded<T> out(rows, 4), g(d, 5);
        row_dots(X.data(), rows, d, u.data(), out.data());
        row_combination(X.data(), rows, d, c.data(), g.data());
        for (Index t = 0; t < rows; ++t) {
          Sum sum;
          for (Index j = 0; j < d; ++j) sum.add(X[t * d + j], u[j]);
          EXPECT_TRUE(sum.is(out[t])) << t;
        }
        for (Index j = 0; j < d; ++j) {
          Sum sum;
          for (Index t = 0; t < rows; ++t) sum.add(X[t * d + j], c[t]);
          EXPECT_TRUE(sum.is(g[j])) << j;
        }
      }
    }
  });
}

TEST(StreamKernels, DotsAndCombinations) { expect_dots_and_combinations<double>(); }
TEST(StreamKernels, DotsAndCombinationsInSinglePrecision) { expect_dots_and_combinations<float>(); }

TEST(StreamKernels, PrefetchingChangesNoBit) {
  for_every_target([] {
    for (const Index d : sizes()) {
      const Index rows = 7;
      const Numbers X(rows * d, 1), c(rows, 2), next(rows * d, 3);
      Numbers plain(d, 4), fetched(d, 5);
      row_combination(X.data(), rows, d, c.data(), plain.data());
      row_combination(X.data(), rows, d, c.data(), fetched.data(), next.data());
      EXPECT_EQ(plain.copy(), fetched.copy()) << d;
    }
  });
}

TEST(StreamKernels, ChosenRows) {
  for_every_target([] {
    for (const Index d : sizes()) {
      for (const Index rows : {0, 1, 2, 3, 4, 7}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << d);
        const Numbers X(11 * d, 1), u(d, 2), c(rows, 3);
        Numbers out(rows, 4), g(d, 5);
        std::vector<Index> at;
        for (Index t = 0; t < rows; ++t) at.push_back((4 * t + 3) % 11);
        row_dots_at(X.data(), at.data(), rows, d, u.data(), out.data());
        row_combination_at(X.data(), at.data(), rows, d, c.data(), g.data());
        for (Index t = 0; t < rows; ++t) {
          Sum sum;
          for (Index j = 0; j < d; ++j) sum.add(X[at[static_cast<std::size_t>(t)] * d + j], u[j]);
          EXPECT_TRUE(sum.is(out[t])) << t;
        }
        for (Index j = 0; j < d; ++j) {
          Sum sum;
          for (Index t = 0; t < rows; ++t) sum.add(X[at[static_cast<std::size_t>(t)] * d + j], c[t]);
          EXPECT_TRUE(sum.is(g[j])) << j;
        }
      }
    }
  });
}

TEST(StreamKernels, GramUpper) {
  for_every_target([] {
    for (Index d = 0; d <= 72; d += 8) {
      for (const Index rows : {0, 1, 2, 9}) {
        const Numbers A(rows * d, 1), B(rows * d, 2);
        Numbers G(d * d, 3);
        gram_upper(A.data(), B.data(), rows, d, G.data());
        for (Index i = 0; i < d; ++i) {
          for (Index j = i; j < d; ++j) {
            Sum sum;
            for (Index t = 0; t < rows; ++t) sum.add(A[t * d + i], B[t * d + j]);
            EXPECT_TRUE(sum.is(G[i * d + j])) << rows << " rows of " << d << ": " << i << " " << j;
          }
        }
      }
    }
  });
}

TEST(StreamKernels, MeasureRows) {
  for_every_target([] {
    for (Index d = 1; d <= 70; ++d) {
      SCOPED_TRACE(d);
      const Index tokens = 5, keep = 3, dp = pad4(d);
      const double sign = -1;
      const std::vector<Index> drop{0, -1, 1, 2, 4};
      const auto rows = static_cast<Index>(drop.size());
      const Numbers X(tokens * d, 1), c(rows, 2);
      Numbers u(dp, 3), value(rows, 4), square(rows, 5), g(dp, 6);
      for (Index j = d; j < dp; ++j) u[j] = 0;
      measure_rows({X.data(), d, keep, sign, drop.data(), rows}, u.data(), c.data(), value.data(), square.data(),
                   g.data());
      const auto delta = [&](Index k, Index j) {  // rounded as the loop must round it
        const Index dropped = drop[static_cast<std::size_t>(k)];
        return dropped < 0 ? sign * X[keep * d + j] : X[keep * d + j] - X[dropped * d + j];
      };
      for (Index k = 0; k < rows; ++k) {
        Sum product, squares;
        for (Index j = 0; j < d; ++j) {
          product.add(delta(k, j), u[j]);
          squares.add(delta(k, j), delta(k, j));
        }
        EXPECT_TRUE(product.is(value[k])) << k;
        EXPECT_TRUE(squares.is(square[k])) << k;
      }
      for (Index j = 0; j < dp; ++j) {
        Sum sum;
        for (Index k = 0; k < rows && j < d; ++k) sum.add(c[k], delta(k, j));
        EXPECT_TRUE(sum.is(g[j])) << j;
      }
    }
  });
}

}  // namespace
}  // namespace attsvm
