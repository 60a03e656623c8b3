#include "trust/nasty_tasks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <utility>

namespace attsvm::test {
namespace {

enum class Queries : std::uint8_t { cross, self, prompt };

/// A task as matrices that are easy to change: n sequences of T tokens, with one query and one set of kept tokens each.
class Draft {
 public:
  explicit Draft(std::uint64_t seed) : engine(seed) {
    n = whole(1, 4), T = whole(2, 5), d = whole(1, 4), dz = whole(1, 4);
    fill();
  }

  Index whole(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(engine); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); }
  double normal() { return std::normal_distribution<double>()(engine); }
  bool chance(double p) { return real(0, 1) < p; }
  double power(Index low, Index high) { return std::pow(10.0, static_cast<double>(whole(low, high))); }
  RowMatrix gaussian(Index rows, Index columns) {
    return RowMatrix::NullaryExpr(rows, columns, [&] { return normal(); });
  }
  RowMatrix integers(Index rows, Index columns, Index size) {
    return RowMatrix::NullaryExpr(rows, columns, [&] { return static_cast<double>(whole(-size, size)); });
  }

  /// Draws Gaussian tokens and queries; each query keeps one token.
  void fill() {
    X.clear();
    kept.clear();
    for (Index i = 0; i < n; ++i) {
      X.push_back(gaussian(T, d));
      kept.push_back({whole(0, T - 1)});
    }
    Z = gaussian(n, dz);
  }
  void fill_with_integers(Index size) {
    for (RowMatrix& x : X) x = integers(T, d, size);
    Z = integers(n, dz, size);
  }
  void keep_first() { kept.assign(static_cast<std::size_t>(n), {0}); }
  void keep_sets() {
    for (auto& set : kept) {
      for (Index t = 0; t < T; ++t) {
        if (t != set.front() && chance(0.5)) set.push_back(t);
      }
    }
  }
  void keep_best_of(const RowMatrix& W) {
    for (Index i = 0; i < n; ++i) {
      Index best = 0;
      (X[static_cast<std::size_t>(i)] * W * Z.row(i).transpose()).maxCoeff(&best);
      kept[static_cast<std::size_t>(i)] = {best};
    }
  }
  void relax_some() {
    for (Index i = 0; i < n; ++i) {
      if (chance(0.5)) relax.push_back(i);
    }
  }

  NastyTask task() const {
    std::vector<double> tokens;
    std::vector<Index> offsets{0};
    for (const RowMatrix& x : X) {
      tokens.insert(tokens.end(), x.data(), x.data() + x.size());
      offsets.push_back(offsets.back() + x.rows());
    }
    TaskArrays arrays{.tokens = Array::own(tokens, {offsets.back(), X.front().cols()}),
                      .offsets = Array::own(offsets, {static_cast<Index>(offsets.size())})};
    if (!values.empty()) {
      arrays.keys = arrays.tokens;
      arrays.tokens = Array::own(values, {offsets.back(), static_cast<Index>(values.size()) / offsets.back()});
    }
    const auto list = [](const std::vector<Index>& items) {
      return Array::own(items, {static_cast<Index>(items.size())});
    };
    if (queries == Queries::cross) {
      arrays.queries = Array::own(std::vector<double>(Z.data(), Z.data() + Z.size()), {Z.rows(), Z.cols()});
    } else if (queries == Queries::self) {
      arrays.query_token = list(query_token);
    }
    if (!sequence.empty()) arrays.sequence = list(sequence), arrays.visible = list(visible);
    if (!labels.empty()) arrays.labels = Array::own(labels, {static_cast<Index>(labels.size())});
    const AttentionTask bare(arrays);
    arrays.select = Selection::sets(kept).mask(bare.longest());
    return {.task = AttentionTask(arrays), .relax = relax, .value_problem = value_problem};
  }

  std::mt19937_64 engine;
  Index n = 1, T = 2, d = 1, dz = 1;
  std::vector<RowMatrix> X;
  RowMatrix Z;
  std::vector<std::vector<Index>> kept;
  std::vector<Index> relax, query_token, sequence, visible;
  std::vector<double> labels, values;
  Queries queries = Queries::cross;
  bool value_problem = false;
};

using Change = std::function<void(Draft&)>;

const std::vector<std::pair<std::string_view, Change>>& table() {
  static const std::vector<std::pair<std::string_view, Change>> classes{
      {"duplicates",
       [](Draft& t) {
         for (std::size_t i = 0; i < t.X.size(); ++i) {
           RowMatrix& X = t.X[i];
           X.row(t.whole(0, t.T - 1)) = RowMatrix(X.row(t.whole(0, t.T - 1)));
           if (t.chance(0.5)) {  // all dropped tokens are equal
             const Index keep = t.kept[i].front(), other = keep == 0 ? t.T - 1 : 0;
             const RowMatrix token = X.row(other);
             for (Index r = 0; r < t.T; ++r) {
               if (r != keep) X.row(r) = token;
             }
           }
         }
       }},
      {"signs and zeros", [](Draft& t) { t.fill_with_integers(1); }},
      {"small integers", [](Draft& t) { t.fill_with_integers(3); }},
      {"nearly opposed",
       [](Draft& t) {
         t.n = t.whole(1, 3), t.T = 3, t.d = std::max<Index>(t.d, 2);
         t.fill();
         t.keep_first();
         const double e = t.power(-14, -3);
         for (RowMatrix& X : t.X) {
           const RowMatrix g = t.gaussian(1, t.d), h = t.gaussian(1, t.d);
           if (t.chance(0.5)) X.row(0).setZero();
           X.row(1) = X.row(0) - (g + e * h);
           X.row(2) = X.row(0) - (-t.real(0.2, 3) * g + (t.chance(0.3) ? -e : e) * h);
         }
       }},
      {"nearly opposed, binary",
       [](Draft& t) {
         t.n = 1, t.T = 3, t.d = std::max<Index>(t.d, 2);
         t.fill();
         t.keep_first();
         const double e = std::exp2(-static_cast<double>(t.whole(10, 49)));
         const RowMatrix g = t.integers(1, t.d, 3), h = t.integers(1, t.d, 3);
         t.X[0].row(0).setZero();
         t.X[0].row(1) = -(g + e * h);
         t.X[0].row(2) = -(-g + e * h);
         t.Z = t.integers(1, t.dz, 1).array() + 2;
       }},
      {"one scale",
       [](Draft& t) {
         const double x = t.power(-2, 2), z = t.power(-2, 2);
         for (RowMatrix& X : t.X) X *= x * x * x * x;
         t.Z *= z * z * z * z;
       }},
      {"a scale per query",
       [](Draft& t) {
         for (Index i = 0; i < t.n; ++i) {
           t.X[static_cast<std::size_t>(i)] *= t.power(-8, 8);
           t.Z.row(i) *= t.power(-8, 8);
         }
       }},
      {"a scale per token",
       [](Draft& t) {
         for (RowMatrix& X : t.X) {
           for (Index r = 0; r < t.T; ++r) X.row(r) *= t.power(-8, 8);
         }
       }},
      {"a scale per coordinate",
       [](Draft& t) {
         for (Index j = 0; j < t.d; ++j) {
           const double scale = t.power(-6, 6);
           for (RowMatrix& X : t.X) X.col(j) *= scale;
         }
         for (Index j = 0; j < t.dz; ++j) t.Z.col(j) *= t.power(-6, 6);
       }},
      {"far from the origin",
       [](Draft& t) {
         const RowMatrix offset = t.power(3, 8) * t.gaussian(1, t.d);
         for (RowMatrix& X : t.X) X.rowwise() += offset.row(0);
       }},
      {"queries on a line",
       [](Draft& t) {
         t.dz = std::max<Index>(t.dz, 2);
         t.Z = t.gaussian(t.n, 1) * t.gaussian(1, t.dz);
         if (t.chance(0.5)) t.Z = t.gaussian(t.n, 1).cwiseAbs() * t.gaussian(1, t.dz);
       }},
      {"tokens on a line",
       [](Draft& t) {
         t.d = std::max<Index>(t.d, 2);
         const RowMatrix line = t.gaussian(1, t.d);
         for (RowMatrix& X : t.X) X = t.gaussian(t.T, 1) * line;
       }},
      {"nothing dropped", [](Draft& t) { t.T = 1, t.fill(); }},
      {"one query", [](Draft& t) { t.n = 1, t.fill(); }},
      {"tokens are numbers", [](Draft& t) { t.d = 1, t.fill(); }},
      {"all are numbers", [](Draft& t) { t.d = t.dz = 1, t.fill(); }},
      {"a query of zeros", [](Draft& t) { t.Z.row(t.whole(0, t.n - 1)).setZero(); }},
      {"equal tokens",
       [](Draft& t) {
         for (RowMatrix& X : t.X) X = RowMatrix(X.row(0)).replicate(t.T, 1);
         if (t.chance(0.5)) {
           for (Index i = 0; i < t.n; ++i) t.relax.push_back(i);
         }
       }},
      {"sets", [](Draft& t) { t.keep_sets(); }},
      {"sets of integers", [](Draft& t) { t.fill_with_integers(2), t.keep_sets(); }},
      {"kept tokens nearly equal",
       [](Draft& t) {
         t.d = std::max<Index>(t.d, 2), t.fill();
         const double e = t.power(-14, -4);
         for (std::size_t i = 0; i < t.X.size(); ++i) {
           t.kept[i] = {0};
           for (Index r = 1; r < t.whole(1, t.T - 1); ++r) {
             t.kept[i].push_back(r);
             t.X[i].row(r) = t.X[i].row(0) + e * t.gaussian(1, t.d);
           }
         }
       }},
      {"kept tokens nearly equal to each other",
       [](Draft& t) {
         t.n = 3, t.T = 4, t.d = 5, t.dz = t.whole(1, 3), t.fill();
         const double e = std::pow(10.0, t.real(-13, -6));
         for (std::size_t i = 0; i < t.X.size(); ++i) {
           t.kept[i] = {0, 1, 2};
           t.X[i].row(2) = t.X[i].row(1) + e * t.gaussian(1, t.d);
         }
       }},
      {"equations nearly contradict the margin",
       [](Draft& t) {
         t.d = std::max<Index>(t.d, 2), t.T = std::max<Index>(t.T, 3), t.fill();
         const double e = t.power(-14, -2);
         for (std::size_t i = 0; i < t.X.size(); ++i) {
           RowMatrix& X = t.X[i];
           t.kept[i] = {0, 1};
           X.row(2) = X.row(0) + t.normal() * (X.row(1) - X.row(0)) + e * t.gaussian(1, t.d);
         }
       }},
      {"relaxed", [](Draft& t) { t.relax_some(); }},
      {"relaxed integers", [](Draft& t) { t.fill_with_integers(2), t.relax_some(); }},
      {"relaxed, nearly opposed",
       [](Draft& t) {
         t.n = 2, t.T = 3, t.d = std::max<Index>(t.d, 2), t.fill(), t.keep_first();
         const double e = t.power(-14, -2);
         const RowMatrix g = t.gaussian(1, t.d), h = t.gaussian(1, t.d);
         t.Z.row(1) = RowMatrix(t.Z.row(0));
         for (RowMatrix& X : t.X) X.row(0).setZero();
         t.X[0].row(1) = -(g + e * h);
         t.X[0].row(2) = g - e * h;
         t.X[1].row(1) = -(g + t.normal() * e * h);
         t.X[1].row(2) = -(0.5 * g + (t.chance(0.5) ? 1 : e) * t.gaussian(1, t.d));
         t.relax = {0};
       }},
      {"ragged",
       [](Draft& t) {
         for (std::size_t i = 0; i < t.X.size(); ++i) {
           t.X[i] = t.gaussian(t.whole(1, 5), t.d);
           t.kept[i] = {t.whole(0, t.X[i].rows() - 1)};
         }
       }},
      {"causal",
       [](Draft& t) {
         t.d = t.whole(2, 4), t.n = t.whole(1, 2), t.T = t.whole(2, 4), t.fill();
         t.queries = Queries::self;
         t.kept.clear();
         for (Index i = 0; i < t.n * t.T; ++i) {
           t.sequence.push_back(i / t.T);
           t.query_token.push_back(i % t.T);
           t.visible.push_back(i % t.T + 1);
           t.kept.push_back({t.whole(0, i % t.T)});
         }
       }},
      {"self",
       [](Draft& t) {
         t.queries = Queries::self;
         for (Index i = 0; i < t.n; ++i) t.query_token.push_back(t.whole(0, t.T - 1));
       }},
      {"self, integers",
       [](Draft& t) {
         t.fill_with_integers(2);
         t.queries = Queries::self;
         for (Index i = 0; i < t.n; ++i) t.query_token.push_back(t.whole(0, t.T - 1));
       }},
      {"prompt", [](Draft& t) { t.queries = Queries::prompt; }},
      {"values",
       [](Draft& t) {
         t.value_problem = true;
         for (Index i = 0; i < t.n; ++i) t.labels.push_back(t.chance(0.5) ? 1 : -1);
       }},
      {"keys",
       [](Draft& t) {
         for (Index k = 0; k < t.n * t.T * 3; ++k) t.values.push_back(t.normal());
       }},
      {"kept token among the others",
       [](Draft& t) {
         t.d = std::max<Index>(t.d, 2), t.T = 4, t.fill(), t.fill_with_integers(3), t.keep_first();
         constexpr std::array<double, 4> kShares{0, 0.25, 0.5, 1};
         for (RowMatrix& X : t.X) {
           const double c = kShares[static_cast<std::size_t>(t.whole(0, 3))];
           X.row(0) = RowMatrix(c * X.row(1) + (1 - c) * X.row(2));
         }
       }},
      {"one sequence, many wishes",
       [](Draft& t) {
         for (RowMatrix& X : t.X) X = RowMatrix(t.X[0]);
         t.Z = RowMatrix(t.Z.row(0)).replicate(t.n, 1);
         if (t.n > 1 && t.chance(0.5)) t.Z.row(1) *= -1;
       }},
      {"nearly one sequence",
       [](Draft& t) {
         t.n = 2, t.fill();
         const double e = t.power(-15, -2);
         t.X[1] = t.X[0] + e * t.gaussian(t.T, t.d);
         t.Z.row(1) = t.Z.row(0) + e * t.gaussian(1, t.dz);
       }},
      {"many rows",
       [](Draft& t) {
         t.n = t.whole(30, 59), t.T = 3, t.d = 2, t.dz = t.whole(1, 2), t.fill();
         t.keep_best_of(t.gaussian(t.d, t.dz));
       }},
      {"lattice",
       [](Draft& t) {
         t.n = t.whole(3, 9), t.T = 4, t.d = t.dz = 2, t.fill(), t.fill_with_integers(2);
         t.keep_best_of(t.integers(2, 2, 2));
       }},
      {"one-hot",
       [](Draft& t) {
         t.n = 4, t.T = 3, t.d = t.dz = 4, t.fill();
         for (Index i = 0; i < t.n; ++i) {
           std::array<Index, 4> order{0, 1, 2, 3};
           std::shuffle(order.begin(), order.end(), t.engine);
           for (Index r = 0; r < t.T; ++r)
             t.X[static_cast<std::size_t>(i)].row(r) =
                 RowMatrix::Identity(4, 4).row(order[static_cast<std::size_t>(r)]);
           t.Z.row(i) = RowMatrix::Identity(4, 4).row(t.whole(0, 3));
         }
       }},
      {"signs",
       [](Draft& t) {
         t.d = t.dz = 3, t.fill();
         const auto sign = [](double x) { return x < 0 ? -1.0 : 1.0; };
         for (RowMatrix& X : t.X) X = RowMatrix(X.unaryExpr(sign));
         t.Z = RowMatrix(t.Z.unaryExpr(sign));
       }},
  };
  return classes;
}

}  // namespace

MarginProblem NastyTask::problem() const {
  return value_problem ? MarginProblem::value(task, *task.select())
                       : MarginProblem::attention(task, *task.select(), relax);
}

std::span<const std::string_view> nasty_classes() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const auto& [name, change] : table()) list.push_back(name);
    return list;
  }();
  return names;
}

NastyTask nasty_task(std::string_view name, std::uint64_t seed) {
  std::uint64_t mixed = seed;
  for (const char letter : name) mixed = mixed * 1099511628211U + static_cast<unsigned char>(letter);
  Draft draft(mixed);
  const auto found = std::find_if(table().begin(), table().end(), [&](const auto& one) { return one.first == name; });
  found->second(draft);
  return draft.task();
}

}  // namespace attsvm::test
