#include "attsvm/verify.h"

#include <cmath>
#include <limits>

#include "base/refuse.h"

// This file uses none of the solvers' code and nothing they computed but the claims themselves: rows are rebuilt from
// the task, sums run in long double, in plain loops.

namespace attsvm {
namespace {

using Real = long double;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Real kAgree = 1e-9L, kViolation = 1e-9L, kCertificate = 1e-12L;
constexpr Real kOrthogonal = 1e-17L;  // columns whose cosine is at most this count as orthogonal
constexpr Real kScaling = 1e-6L;  // ‖A(dual)‖ = 1 is a convention; the bound is divided by the norm it really has

/// One row rebuilt from the task.
struct Row {
  Index query, keep, drop;
  bool equal;
  double rhs;
};

struct Verdict {
  std::string reason;
};

[[noreturn]] void reject(std::string reason) { throw Verdict{std::move(reason)}; }

class Check {
 public:
  Check(const AttentionTask& task, const StoredSolution& claim)
      : task_(task),
        claim_(claim),
        value_problem_(claim.problem == "v"),
        d_(value_problem_ ? task.value_size() : task.key_size()),
        dz_(value_problem_ ? 1 : task.query_size()) {}

  Verification run() {
    Verification result{.status = claim_.status,
                        .objective = kNaN,
                        .dual_objective = kNaN,
                        .gap = kNaN,
                        .violation = kNaN,
                        .residual = kNaN};
    try {
      read_norm();
      if (claim_.problem != "att" && claim_.problem != "v")
        reject(fmt::format("problem '{}' is unknown; must be att or v", claim_.problem));
      rebuild_rows();
      if (!claim_.w_only) compare_rows();
      if (claim_.w_only) {
        judge_W(result);
      } else if (claim_.status == "infeasible") {
        judge_certificate(result);
      } else if (claim_.status == "optimal" || claim_.status == "limit" || claim_.status == "stalled") {
        judge_W(result);
        if (norm_.kind == NormKind::nuclear) judge_factors();
        judge_bound(result);
      } else {
        reject(fmt::format("status '{}' is unknown; must be optimal, infeasible or limit", claim_.status));
      }
      result.valid = true;
    } catch (const Verdict& verdict) {
      result.reason = printable(verdict.reason);
    }
    return result;
  }

 private:
  void read_norm() {
    try {
      norm_ = Norm::parse(claim_.norm);
    } catch (const InputError& error) {
      reject(error.what());
    }
  }

  void rebuild_rows() {
    if (claim_.select.scalar != Scalar::boolean ||
        claim_.select.shape != std::vector<Index>{task_.queries(), task_.longest()}) {
      reject(fmt::format("select has type {} and shape {}; must be bool ({},{})", name_of(claim_.select.scalar),
                         shape_text(claim_.select.shape), task_.queries(), task_.longest()));
    }
    if (static_cast<Index>(claim_.relax.size()) != task_.queries()) reject("relax does not have one entry a query");
    for (Index i = 0; i < task_.queries(); ++i) {
      const auto kept = [&](Index t) { return claim_.select.data[i * task_.longest() + t] != std::byte{0}; };
      Index keep = -1;
      Index count = 0;
      for (Index t = 0; t < task_.longest(); ++t) {
        if (!kept(t)) continue;
        if (t >= task_.visible(i)) reject(fmt::format("select[{},{}] keeps a token that the query does not see", i, t));
        if (keep < 0) keep = t;
        ++count;
      }
      if (keep < 0) reject(fmt::format("select[{}] keeps no token", i));
      if (value_problem_) {
        if (claim_.relax[static_cast<std::size_t>(i)])
          reject(fmt::format("relax[{}] is set; a v problem has nothing to relax", i));
        if (count > 1) reject(fmt::format("select[{}] keeps several tokens; a v problem needs one", i));
        rows_.push_back({i, keep, -1, false, 1});
        continue;
      }
      const double margin = claim_.relax[static_cast<std::size_t>(i)] ? 0 : 1;
      for (Index t = 0; t < task_.visible(i); ++t) {
        if (t != keep) rows_.push_back({i, keep, t, kept(t), kept(t) ? 0 : margin});
      }
    }
  }

  void compare_rows() const {
    const auto wanted = rows_.size();
    for (const auto& [name, size] : {std::pair{"row_query", claim_.row_query.size()},
                                     {"row_keep", claim_.row_keep.size()},
                                     {"row_drop", claim_.row_drop.size()},
                                     {"row_equal", claim_.row_equal.size()},
                                     {"rhs", claim_.rhs.size()},
                                     {"slack", claim_.slack.size()},
                                     {"dual", claim_.dual.size()}}) {
      if (size != wanted) reject(fmt::format("{} has {} rows; the task and selection give {}", name, size, wanted));
    }
    for (std::size_t k = 0; k < wanted; ++k) {
      const Row& row = rows_[k];
      if (claim_.row_query[k] != row.query || claim_.row_keep[k] != row.keep || claim_.row_drop[k] != row.drop ||
          claim_.row_equal[k] != row.equal || claim_.rhs[k] != row.rhs) {
        reject(fmt::format("row {} is not the one that the task and selection give (query {}, keep {}, drop {})", k,
                           row.query, row.keep, row.drop));
      }
      if (!std::isfinite(claim_.dual[k])) reject(fmt::format("dual[{}] is not finite", k));
      if (!row.equal && claim_.dual[k] < 0)
        reject(fmt::format("dual[{}] = {}; must not be negative on an inequality", k, claim_.dual[k]));
    }
  }

  /// The factors of a row, as they lie in the task.
  struct Factors {
    const double *keep, *drop, *zeta;  // drop: null in a v problem, and zeta too
    Real sign;
    Real delta(Index j) const {
      return drop == nullptr ? sign * keep[j] : static_cast<Real>(keep[j]) - static_cast<Real>(drop[j]);
    }
    Real z(Index j) const { return zeta == nullptr ? Real{1} : static_cast<Real>(zeta[j]); }
  };

  Factors factors(const Row& row) const {
    const Index s = task_.sequence(row.query);
    if (value_problem_)
      return {task_.values(s).row(row.keep).data(), nullptr, nullptr, static_cast<Real>(task_.label(row.query))};
    const ConstRows X = task_.keys(s);
    return {X.row(row.keep).data(), X.row(row.drop).data(), task_.query(row.query).data(), 1};
  }

  void judge_W(Verification& result) const {
    if (claim_.W.rows() != d_ || claim_.W.cols() != dz_)
      reject(fmt::format("W has shape ({},{}); must be ({},{})", claim_.W.rows(), claim_.W.cols(), d_, dz_));
    Real violation = 0, scale = 0;
    std::vector<Real> entries;
    for (Index a = 0; a < d_; ++a) {
      for (Index b = 0; b < dz_; ++b) {
        if (!std::isfinite(claim_.W(a, b))) reject(fmt::format("W[{},{}] is not finite", a, b));
        entries.push_back(claim_.W(a, b));
      }
    }
    std::vector<Real> u(static_cast<std::size_t>(d_));
    Index loaded = -1;
    Index worst = 0;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const Row& row = rows_[k];
      const Factors f = factors(row);
      if (row.query != loaded) {
        loaded = row.query;
        for (Index a = 0; a < d_; ++a) {
          u[static_cast<std::size_t>(a)] = 0;
          for (Index b = 0; b < dz_; ++b) u[static_cast<std::size_t>(a)] += static_cast<Real>(claim_.W(a, b)) * f.z(b);
        }
      }
      Real slack = -static_cast<Real>(row.rhs), size = 1;
      for (Index a = 0; a < d_; ++a) {
        const Real term = f.delta(a) * u[static_cast<std::size_t>(a)];
        slack += term;
        size += std::abs(term);
      }
      const Real missing = row.equal ? std::abs(slack) : -slack;
      if (missing > violation) {
        violation = missing;
        worst = static_cast<Index>(k);
      }
      scale = std::max(scale, std::abs(static_cast<Real>(row.rhs)));
      if (!claim_.w_only && !(std::abs(slack - claim_.slack[k]) <= kAgree * size)) {
        reject(fmt::format("slack[{}] is {}, stated as {}", k, static_cast<double>(slack), claim_.slack[k]));
      }
    }
    result.objective = static_cast<double>(norm_of(entries));
    result.violation = static_cast<double>(violation);
    if (scale == 0) scale = 1;
    if (!(violation <= kViolation * scale)) {
      const Row& row = rows_[static_cast<std::size_t>(worst)];
      reject(fmt::format("W violates row {} (query {}, keep {}, drop {}) by {:.3g}", worst, row.query, row.keep,
                         row.drop, result.violation));
    }
    if (!claim_.w_only && !(std::abs(result.objective - claim_.objective) <= kAgree * result.objective)) {
      reject(fmt::format("objective is {}, stated as {}", result.objective, claim_.objective));
    }
  }

  /// Every entry of W = K Qᵀ and of KᵀK = QᵀQ, to 1e-9 of the largest singular value or so.
  void judge_factors() const {
    if (!claim_.has_factors) reject("K and Q are missing; a nuclear answer has them");
    const RowMatrix &K = claim_.K, &Q = claim_.Q;
    const Index r = K.cols();
    if (K.rows() != d_ || Q.rows() != dz_ || Q.cols() != r) {
      reject(fmt::format("K has shape ({},{}) and Q ({},{}); must be ({},r) and ({},r)", K.rows(), r, Q.rows(),
                         Q.cols(), d_, dz_));
    }
    const auto product = [](Index terms, const auto& term) {
      Real sum = 0;
      for (Index t = 0; t < terms; ++t) sum += term(t);
      return sum;
    };
    Real size = 0;
    for (Index a = 0; a < d_; ++a) {
      for (Index b = 0; b < dz_; ++b) size = std::max(size, std::abs(static_cast<Real>(claim_.W(a, b))));
    }
    size *= std::sqrt(static_cast<Real>(d_ * dz_));
    for (Index a = 0; a < d_; ++a) {
      for (Index b = 0; b < dz_; ++b) {
        const Real entry = product(r, [&](Index t) { return static_cast<Real>(K(a, t)) * Q(b, t); });
        if (!(std::abs(entry - claim_.W(a, b)) <= kAgree * size))
          reject(fmt::format("K Q' has {} at ({},{}), W has {}", static_cast<double>(entry), a, b, claim_.W(a, b)));
      }
    }
    for (Index i = 0; i < r; ++i) {
      for (Index j = 0; j <= i; ++j) {
        const Real left = product(d_, [&](Index a) { return static_cast<Real>(K(a, i)) * K(a, j); });
        const Real right = product(dz_, [&](Index b) { return static_cast<Real>(Q(b, i)) * Q(b, j); });
        if (!(std::abs(left - right) <= kAgree * size)) {
          reject(fmt::format("K and Q are not balanced: K'K has {} at ({},{}), Q'Q has {}", static_cast<double>(left),
                             i, j, static_cast<double>(right)));
        }
      }
    }
  }

  /// Σ dual_k δ_k ζ_kᵀ, and Σ |dual_k| ‖δ_k‖ ‖ζ_k‖.
  std::pair<std::vector<Real>, Real> combination() const {
    std::vector<Real> A(static_cast<std::size_t>(d_ * dz_), 0), g(static_cast<std::size_t>(d_), 0);
    Real size = 0;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const Row& row = rows_[k];
      const Factors f = factors(row);
      const Real weight = claim_.dual[k];
      if (weight != 0) {
        Real delta_square = 0, zeta_square = 0;
        for (Index a = 0; a < d_; ++a) {
          const Real entry = f.delta(a);
          g[static_cast<std::size_t>(a)] += weight * entry;
          delta_square += entry * entry;
        }
        for (Index b = 0; b < dz_; ++b) zeta_square += f.z(b) * f.z(b);
        size += std::abs(weight) * std::sqrt(delta_square) * std::sqrt(zeta_square);
      }
      if (k + 1 < rows_.size() && rows_[k + 1].query == row.query) continue;
      for (Index a = 0; a < d_; ++a) {
        for (Index b = 0; b < dz_; ++b)
          A[static_cast<std::size_t>(a * dz_ + b)] += g[static_cast<std::size_t>(a)] * f.z(b);
        g[static_cast<std::size_t>(a)] = 0;
      }
    }
    return {std::move(A), size};
  }

  /// (Σ |entry|^p)^(1/p)
  static Real power_norm(const std::vector<Real>& entries, Real p) {
    Real top = 0, sum = 0;
    for (const Real entry : entries) top = std::max(top, std::abs(entry));
    if (top == 0) return 0;
    for (const Real entry : entries) sum += std::pow(std::abs(entry) / top, p);
    return top * std::pow(sum, 1 / p);
  }

  /// Singular values of a (d,dz) matrix: one-sided Jacobi rotations of the columns of its smaller side until they are
  /// orthogonal; their lengths then.
  std::vector<Real> singular_values(const std::vector<Real>& matrix) const {
    const bool wide = dz_ > d_;
    const Index rows = wide ? dz_ : d_, columns = wide ? d_ : dz_;
    std::vector<std::vector<Real>> column(static_cast<std::size_t>(columns));
    for (Index j = 0; j < columns; ++j) {
      for (Index i = 0; i < rows; ++i)
        column[static_cast<std::size_t>(j)].push_back(
            matrix[static_cast<std::size_t>(wide ? j * dz_ + i : i * dz_ + j)]);
    }
    const auto inner = [](const std::vector<Real>& x, const std::vector<Real>& y) {
      Real sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
      return sum;
    };
    constexpr int kSweeps = 60;
    bool rotated = true;
    for (int sweep = 0; rotated; ++sweep) {
      if (sweep == kSweeps) reject("singular values did not settle");
      rotated = false;
      for (std::size_t j = 1; j < column.size(); ++j) {
        for (std::size_t i = 0; i < j; ++i) {
          auto &x = column[i], &y = column[j];
          const Real a = inner(x, x), b = inner(y, y), c = inner(x, y);
          if (std::abs(c) <= kOrthogonal * std::sqrt(a * b)) continue;
          rotated = true;
          const Real zeta = (b - a) / (2 * c);
          const Real t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
          const Real cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
          for (std::size_t k = 0; k < x.size(); ++k) {
            const Real first = x[k], second = y[k];
            x[k] = cosine * first - sine * second;
            y[k] = sine * first + cosine * second;
          }
        }
      }
    }
    std::vector<Real> sigma;
    sigma.reserve(column.size());
    for (const auto& x : column) sigma.push_back(std::sqrt(inner(x, x)));
    return sigma;
  }

  Real norm_of(const std::vector<Real>& W) const {
    if (norm_.kind == NormKind::nuclear) return power_norm(singular_values(W), 1);
    return power_norm(W, norm_.kind == NormKind::entrywise ? static_cast<Real>(norm_.power) : 2);
  }

  Real dual_norm_of(const std::vector<Real>& A) const {
    const auto p = static_cast<Real>(norm_.power);
    if (norm_.kind == NormKind::entrywise) return power_norm(A, p / (p - 1));
    if (norm_.kind == NormKind::frobenius) return power_norm(A, 2);
    Real top = 0;
    for (const Real sigma : singular_values(A)) top = std::max(top, sigma);
    return top;
  }

  Real weighted_rhs() const {
    Real sum = 0;
    for (std::size_t k = 0; k < rows_.size(); ++k) sum += static_cast<Real>(rows_[k].rhs) * claim_.dual[k];
    return sum;
  }

  void judge_bound(Verification& result) const {
    const auto [A, size] = combination();
    const Real norm = dual_norm_of(A);
    const bool empty = size == 0;
    if (!empty && !(std::abs(norm - 1) <= kScaling))
      reject(fmt::format("the dual norm of A(dual) is {}; must be 1", static_cast<double>(norm)));
    result.dual_objective = empty ? 0 : std::max(0.0, static_cast<double>(weighted_rhs() / norm));
    if (!(std::abs(result.dual_objective - claim_.dual_objective) <=
          kAgree * std::max(result.objective, result.dual_objective))) {
      reject(fmt::format("dual_objective is {}, stated as {}", result.dual_objective, claim_.dual_objective));
    }
    result.gap = result.objective > 0 ? std::max(0.0, result.objective - result.dual_objective) / result.objective : 0;
    if (claim_.status == "optimal" && !(result.gap <= claim_.tolerance)) {
      reject(fmt::format("the gap is {:.3g}, above the tolerance {:.3g}", result.gap, claim_.tolerance));
    }
  }

  void judge_certificate(Verification& result) const {
    const auto [A, size] = combination();
    const Real norm = power_norm(A, 2);
    result.residual = static_cast<double>(norm);
    if (!(std::abs(weighted_rhs() - 1) <= kAgree))
      reject(fmt::format("rhs'dual is {}; a certificate has 1", static_cast<double>(weighted_rhs())));
    if (!(norm <= kCertificate * size)) {
      reject(fmt::format("|A(dual)| is {:.3g}; a certificate has at most {:.3g}", result.residual,
                         static_cast<double>(kCertificate * size)));
    }
  }

  const AttentionTask& task_;
  const StoredSolution& claim_;
  bool value_problem_;
  Index d_, dz_;
  Norm norm_;
  std::vector<Row> rows_;
};

}  // namespace

Verification verify(const AttentionTask& task, const StoredSolution& solution) { return Check(task, solution).run(); }

}  // namespace attsvm
