#include "base/kernels/dense.h"

#include <numeric>

#include "base/kernels/kernel_support.h"

namespace attsvm {
namespace {

using test::for_every_target;
using test::Numbers;
using test::Sum;

constexpr Index kLongest = 72;  // sizes from 0 in steps of 4
const std::vector<Index> kCounts{0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33, 70};

TEST(DenseKernels, Dot) {
  for_every_target([] {
    for (Index n = 0; n <= kLongest; n += 4) {
      const Numbers x(n, 1), y(n, 2);
      Sum sum;
      for (Index i = 0; i < n; ++i) sum.add(x[i], y[i]);
      EXPECT_TRUE(sum.is(dot(x.data(), y.data(), n))) << n;
    }
  });
}

TEST(DenseKernels, Axpy) {
  for_every_target([] {
    for (Index n = 0; n <= kLongest; n += 4) {
      const Numbers x(n, 1);
      Numbers y(n, 2);
      const std::vector<double> before = y.copy();
      axpy(0.7, x.data(), y.data(), n);
      for (Index i = 0; i < n; ++i)
        EXPECT_TRUE(Sum().add(0.7, x[i]).add(before[static_cast<std::size_t>(i)]).is(y[i])) << n << " " << i;
    }
  });
}

TEST(DenseKernels, Rotate) {
  for_every_target([] {
    for (Index n = 0; n <= kLongest; n += 4) {
      Numbers x(n, 1), y(n, 2);
      const std::vector<double> a = x.copy(), b = y.copy();
      const double c = 0.8, s = -0.6;
      rotate(x.data(), y.data(), n, c, s);
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(Sum().add(c, a[i]).add(s, b[i]).is(x[static_cast<Index>(i)])) << n << " " << i;
        EXPECT_TRUE(Sum().add(c, b[i]).add(-s, a[i]).is(y[static_cast<Index>(i)])) << n << " " << i;
      }
    }
  });
}

TEST(DenseKernels, CombineProjectSubtract) {
  for_every_target([] {
    for (Index ld = 0; ld <= kLongest; ld += 4) {
      for (const Index n : kCounts) {
        SCOPED_TRACE(testing::Message() << ld << " by " << n);
        const Numbers A(ld * n, 1), x(n, 2), tall(ld, 3);
        Numbers y(ld, 4), c(n, 5), rest(ld, 6);
        const std::vector<double> before = rest.copy();
        combine(A.data(), ld, n, x.data(), y.data());
        project(A.data(), ld, n, tall.data(), c.data());
        subtract(A.data(), ld, n, x.data(), rest.data());
        for (Index i = 0; i < ld; ++i) {
          Sum product, difference;
          difference.add(before[static_cast<std::size_t>(i)]);
          for (Index j = 0; j < n; ++j) {
            product.add(A[j * ld + i], x[j]);
            difference.add(-A[j * ld + i], x[j]);
          }
          EXPECT_TRUE(product.is(y[i])) << i;
          EXPECT_TRUE(difference.is(rest[i])) << i;
        }
        for (Index j = 0; j < n; ++j) {
          Sum sum;
          for (Index i = 0; i < ld; ++i) sum.add(A[j * ld + i], tall[i]);
          EXPECT_TRUE(sum.is(c[j])) << j;
        }
      }
    }
  });
}

TEST(DenseKernels, AddOuters) {
  for_every_target([] {
    for (Index rows = 0; rows <= 9; ++rows) {
      for (Index columns = 4; columns <= 40; columns += 4) {
        for (const Index count : {Index{0}, Index{1}, Index{3}, kOuters}) {
          SCOPED_TRACE(testing::Message() << count << " of " << rows << " by " << columns);
          const Numbers left(count * rows, 1), right(count * columns, 2);
          Numbers A(rows * columns, 3);
          const std::vector<double> before = A.copy();
          std::vector<const double*> l, r;
          for (Index t = 0; t < count; ++t) {
            l.push_back(left.data() + t * rows);
            r.push_back(right.data() + t * columns);
          }
          add_outers(l.data(), r.data(), count, rows, columns, A.data());
          for (Index e = 0; e < rows * columns; ++e) {
            Sum sum;
            sum.add(before[static_cast<std::size_t>(e)]);
            for (Index t = 0; t < count; ++t) sum.add(left[t * rows + e / columns], right[t * columns + e % columns]);
            EXPECT_TRUE(sum.is(A[e])) << e;
          }
        }
      }
    }
  });
}

TEST(DenseKernels, Multiply) {
  for_every_target([] {
    for (Index rows = 1; rows <= 19; ++rows) {
      for (const Index inner : {1, 3, 8, 11}) {
        for (Index columns = 1; columns <= 9; ++columns) {
          SCOPED_TRACE(testing::Message() << rows << " by " << inner << " by " << columns);
          const Index padded = pad4(rows), ldb = inner + 2;
          const Numbers A(padded * inner, 1), B(ldb * columns, 2);
          Numbers C(padded * columns, 3);
          multiply(A.data(), padded, rows, inner, B.data(), ldb, columns, C.data(), padded);
          for (Index j = 0; j < columns; ++j) {
            for (Index i = 0; i < padded; ++i) {
              Sum sum;
              for (Index k = 0; k < inner; ++k) sum.add(A[k * padded + i], B[j * ldb + k]);
              EXPECT_TRUE(sum.is(C[j * padded + i])) << i << " " << j;
            }
          }
        }
      }
    }
  });
}

/// Rows of several queries in the layouts that the loops read. Rows have length one, as `epoch` needs.
struct Rows {
  Rows(const std::vector<Index>& sizes, Index d_, Index dz_)
      : d(d_),
        dz(dz_),
        dp(pad4(d_)),
        zp(pad4(dz_)),
        total(std::accumulate(sizes.begin(), sizes.end(), Index{0})),
        delta(total * dp, 1),
        zeta(static_cast<Index>(sizes.size()) * zp, 2) {
    normalize(delta, dp, d);
    normalize(zeta, zp, dz);
    Index first = 0;
    for (std::size_t q = 0; q < sizes.size(); ++q) {
      const Index count = sizes[q], ld = pad4(count);
      blocks.push_back({.first = first,
                        .count = count,
                        .query = static_cast<Index>(q),
                        .across = static_cast<Index>(across.size()),
                        .gram = static_cast<Index>(gram.size()),
                        .ld = ld});
      for (Index f = 0; f < d; ++f)
        for (Index k = 0; k < ld; ++k) across.push_back(k < count ? delta[(first + k) * dp + f] : 0);
      for (Index l = 0; l < count; ++l)
        for (Index k = 0; k < ld; ++k)
          gram.push_back(k < count ? dot(delta.data() + (first + k) * dp, delta.data() + (first + l) * dp, dp) : 0);
      first += count;
    }
    work.resize(static_cast<std::size_t>(kOuters * dp + 2 * kLongest));
  }
  static void normalize(Numbers& list, Index stride, Index size) {
    for (Index k = 0; k < list.size(); k += stride) {
      long double square = 0;
      for (Index j = 0; j < size; ++j) square += static_cast<long double>(list[k + j]) * list[k + j];
      for (Index j = 0; j < stride; ++j)
        list[k + j] = j < size ? static_cast<double>(list[k + j] / std::sqrt(square)) : 0;
    }
  }
  RowBlocks view() const {
    return {blocks.data(), static_cast<Index>(blocks.size()), d, dp, dz, zp, delta.data(), across.data(), gram.data(),
            zeta.data()};
  }
  /// δ_kᵀ W ζ_k, for W of dp × dz
  double value(const double* W, Index block, Index k) const {
    const RowBlock& b = blocks[static_cast<std::size_t>(block)];
    long double sum = 0;
    for (Index j = 0; j < dz; ++j)
      for (Index f = 0; f < d; ++f)
        sum += static_cast<long double>(delta[(b.first + k) * dp + f]) * W[j * dp + f] * zeta[b.query * zp + j];
    return static_cast<double>(sum);
  }
  /// Entry (f, j) of Σ x_k δ_k ζ_kᵀ
  double weighed(const double* x, Index f, Index j) const {
    long double sum = 0;
    for (const RowBlock& b : blocks)
      for (Index k = b.first; k < b.first + b.count; ++k)
        sum += static_cast<long double>(x[k]) * delta[k * dp + f] * zeta[b.query * zp + j];
    return static_cast<double>(sum);
  }

  Index d, dz, dp, zp, total;
  Numbers delta, zeta;
  std::vector<RowBlock> blocks;
  std::vector<double> across, gram, work;
};

const std::vector<std::vector<Index>> kGroups{{1}, {4}, {3, 1, 5}, {8, 2, 7, 13}, std::vector<Index>(19, 2)};

TEST(DenseKernels, EvaluateAndWeigh) {
  for_every_target([] {
    for (const auto& groups : kGroups) {
      for (const Index d : {1, 3, 4, 5, 9, 17, 23}) {
        const Index dz = 1 + d % 5;
        SCOPED_TRACE(testing::Message() << groups.size() << " queries, " << d << " by " << dz);
        Rows rows(groups, d, dz);
        Numbers W(rows.dp * dz, 3), values(rows.total, 4), A(rows.dp * dz, 5);
        const Numbers x(rows.total, 6);
        for (Index j = 0; j < dz; ++j)
          for (Index f = d; f < rows.dp; ++f) W[j * rows.dp + f] = 0;
        evaluate(rows.view(), W.data(), rows.work.data(), values.data());
        weigh(rows.view(), x.data(), rows.work.data(), A.data());
        const double size = 4e-16 * static_cast<double>(d * dz + rows.total);  // all numbers are at most one
        for (std::size_t b = 0; b < groups.size(); ++b)
          for (Index k = 0; k < groups[b]; ++k)
            EXPECT_NEAR(values[rows.blocks[b].first + k], rows.value(W.data(), static_cast<Index>(b), k), size);
        for (Index j = 0; j < dz; ++j)
          for (Index f = 0; f < rows.dp; ++f)
            EXPECT_NEAR(A[j * rows.dp + f], f < d ? rows.weighed(x.data(), f, j) : 0, size) << f << " " << j;
      }
    }
  });
}

TEST(DenseKernels, WeightedGram) {
  for_every_target([] {
    for (const auto& groups : kGroups) {
      for (const Index d : {1, 3, 4, 5, 9, 17}) {
        const Index dz = 1 + d % 5, corner = std::min(d, dz), cp = pad4(corner);
        SCOPED_TRACE(testing::Message() << groups.size() << " queries, " << d << " by " << dz);
        const Rows rows(groups, d, dz);
        Numbers F(rows.dp * dz, 3), C(cp * corner, 4);
        for (Index e = 0; e < F.size(); ++e) F[e] = e % rows.dp < d ? F[e] : 0;
        for (Index e = 0; e < C.size(); ++e) C[e] = e % cp < corner ? C[e] : 0;
        std::vector<Index> query;
        for (const RowBlock& block : rows.blocks)
          query.insert(query.end(), static_cast<std::size_t>(block.count), block.query);
        for (const bool crossed : {false, true}) {
          const Index ld = rows.total + 3;
          Numbers G(ld * rows.total, 5), work(13 * rows.dp + rows.zp, 6);
          weighted_gram(rows.view(), F.data(), crossed ? C.data() : nullptr, crossed ? corner : 0, work.data(),
                        G.data(), ld);
          for (Index l = 0; l < rows.total; ++l) {
            for (Index k = l; k < rows.total; ++k) {
              const auto entry = [&](Index row, Index f, Index g) {
                return static_cast<long double>(rows.delta[row * rows.dp + f]) *
                       rows.zeta[query[static_cast<std::size_t>(row)] * rows.zp + g];
              };
              long double sum = 0;
              for (Index f = 0; f < d; ++f) {
                for (Index g = 0; g < dz; ++g) {
                  sum += F[g * rows.dp + f] * entry(k, f, g) * entry(l, f, g);
                  if (crossed && f < corner && g < corner) sum += C[g * cp + f] * entry(k, f, g) * entry(l, g, f);
                }
              }
              EXPECT_NEAR(G[l * ld + k], static_cast<double>(sum), 4e-16 * static_cast<double>(d * dz))
                  << k << " " << l;
            }
          }
        }
      }
    }
  });
}

TEST(DenseKernels, EpochsDescendToTheConditionsOfTheDual) {
  for_every_target([] {
    for (const auto& groups : kGroups) {
      const Index d = 9, dz = 3;
      Rows rows(groups, d, dz);
      std::vector<double> b(static_cast<std::size_t>(rows.total), 1.0), low(b.size(), 0.0), x(b.size(), 0.0);
      low.back() = -HUGE_VAL;  // an equation, whose multiplier is negative
      b.back() = -1;
      Numbers W(rows.dp * dz, 0);
      const auto objective = [&] {
        long double sum = 0;
        for (Index e = 0; e < W.size(); ++e) sum += static_cast<long double>(W[e]) * W[e] / 2;
        for (std::size_t k = 0; k < x.size(); ++k) sum -= static_cast<long double>(b[k]) * x[k];
        return sum;
      };
      long double before = objective();
      for (int repeat = 0; repeat < 5; ++repeat) {
        const std::vector<double> old = x;
        const Index changed = epoch(rows.view(), b.data(), low.data(), 2, x.data(), rows.work.data(), W.data());
        Index expected = 0;
        for (std::size_t k = 0; k < x.size(); ++k) expected += (x[k] != 0) != (old[k] != 0) ? 1 : 0;
        EXPECT_EQ(changed, expected);
        EXPECT_LE(objective(), before + 1e-14L);
        before = objective();
        for (Index j = 0; j < dz; ++j)
          for (Index f = 0; f < d; ++f) EXPECT_NEAR(W[j * rows.dp + f], rows.weighed(x.data(), f, j), 1e-13);
      }
      EXPECT_LT(before, 0);
      for (int repeat = 0; repeat < 20'000; ++repeat)
        epoch(rows.view(), b.data(), low.data(), 2, x.data(), rows.work.data(), W.data());
      if (rows.total > 5) continue;  // more rows may be too close to dependent for so plain a method
      for (std::size_t q = 0; q < groups.size(); ++q) {
        for (Index k = 0; k < groups[q]; ++k) {
          const Index row = rows.blocks[q].first + k;
          const auto at = static_cast<std::size_t>(row);
          const double slack = rows.value(W.data(), static_cast<Index>(q), k) - b[at];
          EXPECT_GE(x[at], low[at]);
          EXPECT_NEAR(x[at] > low[at] ? slack : std::min(slack, 0.0), 0, 1e-10) << row;
        }
      }
    }
  });
}

TEST(DenseKernels, FactorSolve) {
  for_every_target([] {
    for (Index n = 0; n <= 70; ++n) {
      for (const Index border : {1, 4}) {
        SCOPED_TRACE(testing::Message() << n << ", " << border << " right-hand sides");
        const Index ld = pad4(n + border);
        Numbers G(ld * n, 1), x(n, 2);
        for (Index k = 0; k < n; ++k) {
          for (Index i = 0; i < n; ++i) G[k * ld + i] /= static_cast<double>(n);
          G[k * ld + k] = 2;
        }
        const std::vector<double> before = G.copy();
        const auto entry = [&](Index i, Index k) {
          return static_cast<long double>(before[static_cast<std::size_t>(std::min(i, k) * ld + std::max(i, k))]);
        };
        const auto side = [&](Index t, Index k) { return before[static_cast<std::size_t>(k * ld + n + t)]; };
        const auto expect_solution = [&](const Numbers& y, const std::function<double(Index)>& b) {
          for (Index i = 0; i < n; ++i) {
            long double sum = 0;
            for (Index k = 0; k < n; ++k) sum += entry(i, k) * y[k];
            EXPECT_NEAR(static_cast<double>(sum), b(i), 1e-14) << i;
          }
        };
        factor_solve(G.data(), ld, n, 1e-9, x.data());
        expect_solution(x, [&](Index i) { return side(0, i); });
        for (Index k = 0; k < n; ++k) {  // G = (LD) D⁻¹ (LD)ᵀ, and L times the new right-hand side is the old one
          for (Index i = k; i < n + border; ++i) {
            long double sum = 0;
            for (Index j = 0; j <= k; ++j)
              sum += static_cast<long double>(G[j * ld + i]) * G[j * ld + k] / G[j * ld + j];
            EXPECT_NEAR(static_cast<double>(sum), before[static_cast<std::size_t>(k * ld + i)], 1e-14) << i << " " << k;
          }
        }
        Numbers again(n, 3);
        const std::vector<double> b = again.copy();
        solve_again(G.data(), ld, n, again.data());
        expect_solution(again, [&](Index i) { return b[static_cast<std::size_t>(i)]; });
        Numbers upper(n, 4);
        const std::vector<double> c = upper.copy();
        solve_upper(G.data(), ld, n, upper.data());
        for (Index k = 0; k < n; ++k) {  // (LD)ᵀ x = c
          long double sum = 0;
          for (Index i = k; i < n; ++i) sum += static_cast<long double>(G[k * ld + i]) * upper[i];
          EXPECT_NEAR(static_cast<double>(sum), c[static_cast<std::size_t>(k)], 1e-14) << k;
        }
      }
    }
  });
}

TEST(DenseKernels, FactorSolveLeavesOutDependentColumns) {
  for_every_target([] {
    for (Index n = 2; n <= 13; ++n) {
      for (Index copy = 1; copy < n; ++copy) {  // column and row `copy` repeat those before them
        const Index ld = pad4(n + 1);
        Numbers G(ld * n, 1), x(n, 2);
        const auto original = [&](Index k) { return k == copy ? copy - 1 : k; };
        for (Index k = 0; k < n; ++k)
          for (Index i = k; i <= n; ++i)
            G[k * ld + i] = i == n ? 1 : original(i) == original(k) ? 2 : 1 / (3.0 + static_cast<double>(i + k));
        for (Index i = copy + 1; i < n; ++i) G[copy * ld + i] = G[(copy - 1) * ld + i];
        for (Index k = 0; k < copy - 1; ++k) G[k * ld + copy] = G[k * ld + copy - 1];
        factor_solve(G.data(), ld, n, 1e-9, x.data());
        EXPECT_EQ(G[copy * (ld + 1)], HUGE_VAL) << n << " " << copy;
        EXPECT_EQ(x[copy], 0) << n << " " << copy;
        for (Index k = 0; k < n; ++k) EXPECT_TRUE(k == copy || std::isfinite(G[k * (ld + 1)])) << n << " " << k;
      }
    }
  });
}

}  // namespace
}  // namespace attsvm
