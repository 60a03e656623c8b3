#include "base/kernels/gram.h"

#include <numeric>

#include "base/kernels/kernel_support.h"

namespace attsvm {
namespace {

using test::for_every_target;
using test::Numbers;
using test::Sum;

TEST(GramKernels, UnitRows) {
  for_every_target([] {
    for (Index d = 1; d <= 70; ++d) {
      for (const double unit : {1.0, 1e-157, 1e-200, 1e200}) {  // lengths whose squares underflow and overflow
        SCOPED_TRACE(testing::Message() << d << " in units of " << unit);
        const Index tokens = 4, keep = 2, dp = pad4(d);
        Numbers X(tokens * d, 1);
        for (Index i = 0; i < X.size(); ++i) X[i] *= unit;
        const std::vector<Index> drop{0, 1, -1, 2, 3};  // row 3 is zero: x_keep − x_keep
        const auto count = static_cast<Index>(drop.size());
        Numbers out(count * dp, 2), norm(count, 3);
        unit_rows(X.data(), d, keep, -1.0, drop.data(), count, out.data(), norm.data());
        for (Index k = 0; k < count; ++k) {
          const Index dropped = drop[static_cast<std::size_t>(k)];
          const auto delta = [&](Index j) {
            return dropped < 0 ? -X[keep * d + j] : X[keep * d + j] - X[dropped * d + j];
          };
          long double square = 0;
          for (Index j = 0; j < d; ++j) square += static_cast<long double>(delta(j)) * delta(j);
          const long double length = std::sqrt(square);
          const double close = 1e-16 * static_cast<double>(d + 4);
          EXPECT_NEAR(norm[k] / unit, static_cast<double>(length / unit), close * static_cast<double>(length / unit));
          for (Index j = 0; j < dp; ++j)
            EXPECT_NEAR(out[k * dp + j], j < d && length > 0 ? static_cast<double>(delta(j) / length) : 0, close) << j;
        }
      }
    }
  });
}

TEST(GramKernels, LayAcross) {
  for_every_target([] {
    for (Index d = 0; d <= 21; ++d) {
      for (Index count = 0; count <= 21; ++count) {
        const Index dp = pad4(d), ld = pad4(count) + 4;
        const Numbers rows(count * dp, 1);
        Numbers A(d * ld, 2);
        const std::vector<double> before = A.copy();
        lay_across(rows.data(), d, count, A.data(), ld);
        for (Index f = 0; f < d; ++f) {
          for (Index k = 0; k < ld; ++k) {
            const double expected = k < count         ? rows[k * dp + f]
                                    : k < pad4(count) ? 0
                                                      : before[static_cast<std::size_t>(f * ld + k)];
            EXPECT_EQ(A[f * ld + k], expected) << d << " " << count << ": " << f << " " << k;
          }
        }
      }
    }
  });
}

TEST(GramKernels, QueryProductsAndHadamardGram) {
  for_every_target([] {
    const std::vector<std::vector<Index>> cases{{1}, {3}, {4}, {1, 5, 2}, {4, 4, 8}, {7, 1, 1, 6, 3}, {70}};
    for (const auto& sizes : cases) {
      for (const Index d : {1, 2, 5, 8, 13}) {
        const Index zp = pad4(1 + d % 6), groups = static_cast<Index>(sizes.size());
        const Numbers zeta(2 * groups * zp, 1);
        std::vector<Index> start{0}, query, local;  // the queries are 1, 3, 5, …
        for (Index a = 0; a < groups; ++a) {
          start.push_back(start.back() + sizes[static_cast<std::size_t>(a)]);
          query.resize(static_cast<std::size_t>(start.back()), 2 * a + 1);
          local.resize(static_cast<std::size_t>(start.back()), a);
        }
        const Index m = start.back(), ldd = pad4(m), ld = ldd + 4;
        SCOPED_TRACE(testing::Message() << m << " rows of " << d);
        Numbers D(d * ldd, 2), H(groups * ldd, 3), G(ldd * ld, 4);
        for (Index f = 0; f < d; ++f)
          for (Index k = m; k < ldd; ++k) D[f * ldd + k] = 0;
        query_products(zeta.data(), zp, query.data(), start.data(), groups, ldd, H.data());
        for (Index a = 0; a < groups; ++a) {
          const Index own = start[static_cast<std::size_t>(a)];
          for (Index k = own & ~Index{3}; k < ldd; ++k) {
            Sum sum;
            for (Index j = 0; j < zp && k >= own && k < m; ++j)
              sum.add(zeta[(2 * a + 1) * zp + j], zeta[query[static_cast<std::size_t>(k)] * zp + j]);
            EXPECT_TRUE(sum.is(H[a * ldd + k])) << a << " " << k;
          }
        }
        hadamard_gram(D.data(), d, m, ldd, H.data(), local.data(), G.data(), ld);
        for (Index l = 0; l < m; ++l) {
          for (Index k = l; k < m; ++k) {
            Sum sum;
            for (Index f = 0; f < d; ++f)
              sum.add(static_cast<long double>(D[f * ldd + k]) * D[f * ldd + l],
                      H[local[static_cast<std::size_t>(l)] * ldd + k]);
            EXPECT_TRUE(sum.is(G[l * ld + k])) << k << " " << l;
          }
        }
      }
    }
  });
}

TEST(GramKernels, MirrorAndPick) {
  for_every_target([] {
    for (Index n = 0; n <= 37; ++n) {
      const Index ld = pad4(n) + 4;
      Numbers G(ld * pad4(n), 1);
      const std::vector<double> before = G.copy();
      mirror(G.data(), ld, n);
      for (Index l = 0; l < n; ++l)
        for (Index k = 0; k < n; ++k)
          EXPECT_EQ(G[l * ld + k], before[static_cast<std::size_t>(std::min(k, l) * ld + std::max(k, l))]) << n;
      std::vector<Index> at;
      for (Index k = n % 3; k < n; k += 1 + k % 3) at.push_back(k);
      const auto count = static_cast<Index>(at.size());
      const Index ldl = pad4(count + 1);
      Numbers L(ldl * count, 2);
      pick(G.data(), ld, at.data(), count, L.data(), ldl);
      for (Index j = 0; j < count; ++j)
        for (Index i = j; i < count; ++i)
          EXPECT_EQ(L[j * ldl + i], G[at[static_cast<std::size_t>(j)] * ld + at[static_cast<std::size_t>(i)]]) << n;
    }
  });
}

TEST(GramKernels, CombineAt) {
  for_every_target([] {
    for (Index ld = 0; ld <= 72; ld += 4) {
      for (const Index n : {0, 1, 2, 5, 9}) {
        const Numbers G(ld * 2 * n, 1), x(n, 2);
        Numbers y(ld, 3);
        std::vector<Index> at;
        for (Index j = 0; j < n; ++j) at.push_back((7 * j) % (2 * n));
        combine_at(G.data(), ld, at.data(), n, x.data(), y.data());
        for (Index i = 0; i < ld; ++i) {
          Sum sum;
          for (Index j = 0; j < n; ++j) sum.add(x[j], G[at[static_cast<std::size_t>(j)] * ld + i]);
          EXPECT_TRUE(sum.is(y[i])) << ld << " by " << n << ": " << i;
        }
      }
    }
  });
}

TEST(GramKernels, GaussSeidelSweepsDescendToTheConditions) {
  for_every_target([] {
    for (Index n = 0; n <= 35; ++n) {
      SCOPED_TRACE(n);
      const Index ld = pad4(n);
      Numbers G(ld * n, 1), x(n, 0), s(ld, 2), low(n, 0);
      for (Index k = 0; k < n; ++k) {
        for (Index i = 0; i < ld; ++i)
          G[k * ld + i] = i == k ? 1 : i < k ? G[i * ld + k] : i < n ? G[k * ld + i] / static_cast<double>(n) : 0;
        if (k % 5 == 4) low[k] = -HUGE_VAL;
      }
      const std::vector<double> b = s.copy();  // s = b − Gx at x = 0
      const auto residual = [&](Index i) {
        long double sum = b[static_cast<std::size_t>(i)];
        for (Index k = 0; k < n; ++k) sum -= static_cast<long double>(G[k * ld + i]) * x[k];
        return sum;
      };
      const auto objective = [&] {  // ½xᵀGx − bᵀx = −½xᵀ(b + s)
        long double sum = 0;
        for (Index i = 0; i < n; ++i) sum -= x[i] * (b[static_cast<std::size_t>(i)] + residual(i)) / 2;
        return sum;
      };
      long double before = objective();
      for (int sweep = 0; sweep < 200; ++sweep) {
        const std::vector<double> old = x.copy();
        std::vector<double> y = old, rest = s.copy();  // the same pass as plain as can be, over-relaxed by 1.2
        for (std::size_t k = 0; k < y.size(); ++k) {
          const double step = std::max(y[k] + 1.2 * rest[k], low[static_cast<Index>(k)]) - y[k];
          for (std::size_t i = 0; i < rest.size(); ++i)
            rest[i] -= step * G[static_cast<Index>(k) * ld + static_cast<Index>(i)];
          y[k] += step;
        }
        const Index changed = gauss_seidel(G.data(), ld, n, low.data(), x.data(), s.data());
        Index expected = 0;
        for (Index k = 0; k < n; ++k) {
          expected += (x[k] != 0) != (old[static_cast<std::size_t>(k)] != 0) ? 1 : 0;
          EXPECT_GE(x[k], low[k]);
          EXPECT_NEAR(x[k], y[static_cast<std::size_t>(k)], 1e-14) << k;
        }
        EXPECT_EQ(changed, expected);
        EXPECT_LE(objective(), before + 1e-14L);
        before = objective();
        for (Index i = 0; i < n; ++i) EXPECT_NEAR(s[i], static_cast<double>(residual(i)), 1e-13) << i;
      }
      for (Index i = 0; i < n; ++i) EXPECT_NEAR(x[i] > low[i] ? s[i] : std::max(s[i], 0.0), 0, 1e-12) << i;
    }
  });
}

}  // namespace
}  // namespace attsvm
