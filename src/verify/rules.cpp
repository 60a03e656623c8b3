#include "verify/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "base/refuse.h"

namespace attsvm::internal::proof {

bool is_at_most(const Ball& left, const Ball& right, std::string_view what) {
  if (surely_at_most(left, right)) return true;
  if (surely_above(left, right)) return false;
  throw Undecided{std::string(what)};
}

void require_stated(const Ball& found, double stated, const Ball& size, std::string_view name) {
  if (!std::isfinite(stated) || !is_at_most(abs(found - Ball(stated)), Ball(kAgree) * size, name))
    reject(fmt::format("{} is {}, stated as {}", name, found.middle(), stated));
}

Ball weighted_rhs(std::span<const double> rhs, std::span<const double> dual) {
  Ball sum;
  for (std::size_t k = 0; k < dual.size(); ++k) {
    if (rhs[k] != 0) sum = sum + Ball(rhs[k]) * Ball(dual[k]);
  }
  return sum;
}

Ball weighted_rhs(const Case& on) {
  return on.shared != nullptr ? on.shared->weighted_rhs() : weighted_rhs(on.claim.rhs, on.claim.dual);
}

void RowFindings::add(const RowFindings& later) {
  if (!later.worst.empty() && (worst.empty() || !(later.worst_violation <= violation))) {
    worst = later.worst;
    worst_violation = later.worst_violation;
  }
  violation = std::max(violation, later.violation);
  scaling = std::max(scaling, later.scaling);
  homogeneous = std::max(homogeneous, later.homogeneous);
}

void MultiplierFindings::add(const MultiplierFindings& other) {
  weigh_nothing = weigh_nothing && other.weigh_nothing;
  impossible = impossible || other.impossible;
  need = max(need, other.need);
}

namespace {

constexpr std::size_t kTold = 1024;  // rows between two calls of the progress callback
constexpr double kViolation = 1e-9;  // of a row, relative to its right-hand side, or to ‖δ‖ ‖W‖_F ‖ζ‖ if that is 0
constexpr double kRounding = 0x1p-50;  // of ‖δ‖ ‖W‖_F ‖ζ‖: rounding W to doubles may cost a row this much
constexpr double kMostMissing = 0.5;   // of a right-hand side, even if rounding allows more: 2 W meets the row
constexpr double kScaling = 1e-6;      // allowed error of ‖A(dual)‖ = 1; the bound is divided by the true norm
constexpr double kNoRank = 1e-12;      // singular values up to this part of the largest count as zero

/// Computes ‖δ‖ ‖ζ‖ of rows, ‖ζ‖ only once per query.
class RowSizes {
 public:
  explicit RowSizes(const Question& question) : question_(question) {}
  Ball of(const Row& row) {
    if (row.query != query_) {
      query_ = row.query;
      zeta_ = question_.zeta_size(query_);
    }
    return question_.delta_size(row) * zeta_;
  }

 private:
  const Question& question_;
  Index query_ = -1;
  Ball zeta_;
};

/// Checks the row values of W one after another.
class RowJudge {
 public:
  explicit RowJudge(const Case& on)
      : on_(on),
        sizes_(on.question),
        W_size_(on.arithmetic.frobenius_of_W()),
        missed_(on.claim.is_soft() ? on.claim.penalty.size() : 0) {}

  void look_at(std::size_t k, const Ball& value) {
    const Row& row = on_.question.rows()[k];
    const Ball slack = row.rhs == 0 ? value : value - Ball(row.rhs);
    if (!on_.claim.w_only) compare_slack(k, value, slack);
    if (on_.claim.is_soft() && row.is_soft()) {  // W may miss it, at a price
      Ball& missed = missed_[static_cast<std::size_t>(row.query)];
      missed = max(missed, -slack);
      return;
    }
    if (row.rhs > 0 && !row.equal) scale_to(row.rhs, value);
    if (!row.equal && arb_is_nonnegative(slack.get())) return;
    const Ball missing = row.equal ? abs(slack) : max(Ball(0), -slack);
    const double amount = missing.upper();
    if (row.rhs == 0) measure_homogeneous(row, missing);
    if (!is_met(row, missing) && (worst_ == kNone || !(amount <= found_.violation))) {
      worst_ = k;
      found_.worst_violation = amount;
    }
    found_.violation = std::max(found_.violation, amount);
  }

  RowFindings findings() {
    if (worst_ != kNone) found_.worst = name_of(on_.question, worst_);
    return found_;
  }
  std::vector<Ball> missed() { return std::move(missed_); }

 private:
  /// Rule "numbers stated". Adds up the terms of a row only if a cheaper comparison does not settle it.
  void compare_slack(std::size_t k, const Ball& value, const Ball& slack) const {
    const double stated = on_.claim.slack[k];
    const auto mismatch = [&] {
      reject(fmt::format("slack[{}] is {}, stated as {}", on_.question.row_number(k), slack.middle(), stated));
    };
    if (!std::isfinite(stated)) mismatch();
    const Ball difference = abs(slack - Ball(stated));
    if (surely_at_most(difference, Ball(kAgree) * (Ball(1) + abs(value)))) return;
    const Ball terms = on_.question.term_sum(on_.question.rows()[k], on_.claim.W);
    if (!is_at_most(difference, Ball(kAgree) * (Ball(1) + terms), fmt::format("slack[{}]", k))) mismatch();
  }

  void scale_to(double rhs, const Ball& value) {
    if (surely_at_most(Ball(rhs), value)) return;
    found_.scaling =
        std::max(found_.scaling, arb_is_positive(value.get()) ? (Ball(rhs) / value - Ball(1)).upper() : kInfinity);
  }

  void measure_homogeneous(const Row& row, const Ball& missing) {
    if (missing.is_zero()) return;
    found_.homogeneous = std::max(found_.homogeneous, (missing / (sizes_.of(row) * W_size_)).upper());
  }

  /// Rule "W".
  bool is_met(const Row& row, const Ball& missing) {
    const auto what = fmt::format("the violation of the row (query {}, drop {})", row.query, row.drop);
    if (row.rhs == 0)
      return missing.is_zero() || is_at_most(missing, Ball(kViolation) * sizes_.of(row) * W_size_, what);
    const Ball rhs = abs(Ball(row.rhs)), allowed = Ball(kViolation) * rhs;
    if (surely_at_most(missing, allowed)) return true;
    const Ball rounding = min(Ball(kRounding) * sizes_.of(row) * W_size_, Ball(kMostMissing) * rhs);
    return is_at_most(missing, max(allowed, rounding), what);
  }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  const Case& on_;
  RowSizes sizes_;
  Ball W_size_;
  std::size_t worst_ = kNone;
  RowFindings found_;
  std::vector<Ball> missed_;
};

bool weigh_nothing(const Case& on) {
  if (on.shared != nullptr) return on.shared->multipliers().weigh_nothing;
  for (std::size_t k = 0; k < on.claim.dual.size(); ++k) {
    if (on.claim.dual[k] != 0 && !on.question.is_zero(on.question.rows()[k])) return false;
  }
  return true;
}

RowJudge look_at_rows(const Case& on) {
  RowJudge judge(on);
  const auto rows = static_cast<double>(on.question.rows().size());
  on.arithmetic.read_rows([&](std::size_t k, const Ball& value) {
    if (k % kTold == 0) on.tell(kRowShare * static_cast<double>(k) / rows, "the rows of W");
    judge.look_at(k, value);
  });
  return judge;
}

/// Rule "scaling", and the bound that the multipliers prove: every W that meets the rows has at least the norm
/// returned.
Ball proven_bound(const Case& on) {
  if (weigh_nothing(on)) return Ball(0);
  const Ball norm = on.arithmetic.dual_norm_of_A();
  if (!is_at_most(abs(norm - Ball(1)), Ball(kScaling), "the dual norm of A(dual)"))
    reject(fmt::format("the dual norm of A(dual) is {}; must be 1", norm.middle()));
  return weighted_rhs(on) / norm;
}

}  // namespace

void require_tolerance(const StoredSolution& claim) {
  if (!(claim.tolerance > 0 && claim.tolerance < 1))
    reject(fmt::format("tolerance is {}; must be above 0 and below 1", claim.tolerance));
}

void require_multipliers(const Question& question, const StoredSolution& claim) {
  for (std::size_t k = 0; k < claim.dual.size(); ++k) {
    if (!std::isfinite(claim.dual[k])) reject(fmt::format("dual[{}] is not finite", question.row_number(k)));
    if (!question.rows()[k].equal && claim.dual[k] < 0)
      reject(
          fmt::format("dual[{}] = {}; must not be negative on an inequality", question.row_number(k), claim.dual[k]));
  }
}

void require_matrix(const Question& question, const StoredSolution& claim) {
  if (claim.W.rows() != question.d() || claim.W.cols() != question.dz()) {
    reject(fmt::format("W has shape ({},{}); must be ({},{})", claim.W.rows(), claim.W.cols(), question.d(),
                       question.dz()));
  }
  for (Index a = 0; a < claim.W.rows(); ++a) {
    for (Index b = 0; b < claim.W.cols(); ++b) {
      if (!std::isfinite(claim.W(a, b))) reject(fmt::format("W[{},{}] is not finite", a, b));
    }
  }
}

void require_factors(const Question& question, const StoredSolution& claim) {
  if (!claim.has_factors) reject("K and Q are missing; a nuclear answer has them");
  const RowMatrix &K = claim.K, &Q = claim.Q;
  if (K.rows() != question.d() || Q.rows() != question.dz() || Q.cols() != K.cols()) {
    reject(fmt::format("K has shape ({},{}) and Q ({},{}); must be ({},r) and ({},r)", K.rows(), K.cols(), Q.rows(),
                       Q.cols(), question.d(), question.dz()));
  }
  if (!K.allFinite() || !Q.allFinite()) reject("K and Q have entries that are not finite");
}

void require_nothing(const Question& question, const Norm& norm, const StoredSolution& claim) {
  if ((claim.W.array() != 0).any()) reject("W is not zero; an infeasible file has none");
  for (std::size_t k = 0; k < claim.slack.size(); ++k) {
    if (claim.slack[k] != -claim.rhs[k])
      reject(fmt::format("slack[{}] is {}; an infeasible file has -rhs", question.row_number(k), claim.slack[k]));
  }
  if (!std::isnan(claim.objective) || !std::isnan(claim.dual_objective))
    reject("objective and dual_objective must be NaN in an infeasible file");
  if (!norm.is_nuclear()) {
    if (claim.has_factors) reject("K and Q belong to nuclear answers only");
    return;
  }
  require_factors(question, claim);
  if (claim.K.cols() != 0) reject(fmt::format("K and Q have {} columns; an infeasible file has none", claim.K.cols()));
}

RowFindings find_in_rows(const Case& on) { return look_at_rows(on).findings(); }

MultiplierFindings find_in_multipliers(const Case& on) {
  MultiplierFindings found{.weigh_nothing = weigh_nothing(on)};
  RowSizes sizes(on.question);
  for (std::size_t k = 0; k < on.claim.dual.size() && !found.impossible; ++k) {
    const Row& row = on.question.rows()[k];
    if (!(row.rhs > 0 && on.claim.dual[k] > 0)) continue;
    if (on.question.is_zero(row)) {  // 0 ≥ b > 0: no W meets this row
      found.impossible = true;
    } else {
      found.need = max(found.need, Ball(row.rhs) / sizes.of(row));
    }
  }
  return found;
}

std::vector<Ball> judge_rows(const Case& on) {
  RowFindings found;
  std::vector<Ball> missed;
  if (on.shared != nullptr) {
    found = on.shared->findings();
  } else {
    RowJudge judge = look_at_rows(on);
    found = judge.findings();
    missed = judge.missed();
  }
  on.result.violation = found.violation;
  on.result.scaling = found.scaling;
  on.result.homogeneous = found.homogeneous;
  if (found.worst.empty()) return missed;
  on.result.objective = on.arithmetic.norm_of_W().upper();  // reported although the answer is rejected
  reject(fmt::format("W violates {} by {:.3g}", found.worst, found.violation));
}

void judge_objective(const Case& on) {
  const Ball norm = on.arithmetic.norm_of_W();
  on.result.objective = norm.upper();
  if (!on.claim.w_only) require_stated(norm, on.claim.objective, norm, "objective");
}

void judge_factors(const Case& on) {
  if (!on.norm.is_nuclear()) {
    if (on.claim.has_factors) reject("K and Q belong to nuclear answers only");
    return;
  }
  require_factors(on.question, on.claim);
  const RowMatrix &K = on.claim.K, &Q = on.claim.Q, &W = on.claim.W;
  const Ball size = Ball(kAgree) * Ball(W.cwiseAbs().maxCoeff()) * sqrt(Ball(static_cast<double>(W.size())));
  const Ball off = on.arithmetic.product_defect(), unbalanced = on.arithmetic.balance_defect();
  if (!is_at_most(off, Ball(kNoRank / kAgree) * size, "K Q' = W"))
    reject(fmt::format("K Q' differs from W by {:.3g}", off.upper()));
  if (!is_at_most(unbalanced, size, "K'K = Q'Q"))
    reject(fmt::format("K and Q are not balanced: K'K and Q'Q differ by {:.3g}", unbalanced.upper()));
  for (Index j = 0; j < K.cols(); ++j) {
    if ((K.col(j).array() == 0).all() || (Q.col(j).array() == 0).all())
      reject(fmt::format("column {} of K or Q is zero; the rank has no such column", j));
  }
  if (K.cols() > std::min(W.rows(), W.cols()))
    reject(fmt::format("K and Q have {} columns; the rank of W is at most {}", K.cols(), std::min(W.rows(), W.cols())));
  on.result.rank = K.cols();
  if (K.cols() == 0) return;
  const SpectralProof spectrum = on.arithmetic.spectrum_of_W();
  const Ball last = spectrum.singular_value_bound(K.cols()), top = spectrum.operator_norm();
  if (surely_at_most(last, Ball(kNoRank) * top)) {
    reject(fmt::format("K and Q have {} columns, but that singular value of W is at most {:.2g} of the largest",
                       K.cols(), (last / top).upper()));
  }
}

void judge_gap(const Case& on, const Ball& objective, const Ball& distance) {
  if (on.claim.dual_objective > on.claim.objective) {  // rule "contradiction" for the stated numbers
    reject(fmt::format("dual_objective is stated as {}, above the objective {}", on.claim.dual_objective,
                       on.claim.objective));
  }
  on.result.gap = distance.is_zero() ? 0 : (distance / objective).upper();
  if (on.claim.status != "optimal" || objective.is_zero()) return;
  const Ball allowed = Ball(on.settings.tolerance) * objective;  // rule "gap"
  if (surely_at_most(distance, allowed)) return;
  const bool sure = surely_above(distance, allowed);
  if (!sure && WorkingBits::now() < kMostBits) throw Undecided{"the gap"};
  reject(fmt::format("the gap is {:.3g}{}, above the tolerance {:.3g}", on.result.gap, sure ? "" : " at most",
                     on.settings.tolerance));
}

void judge_bound(const Case& on) {
  const Ball objective = on.arithmetic.norm_of_W(), bound = proven_bound(on);
  on.result.dual_objective = std::clamp(bound.lower(), 0.0, on.result.objective);
  require_stated(bound, on.claim.dual_objective, max(objective, bound), "dual_objective");
  // Rule "contradiction": ‖W‖ is below the bound by more than rounding its entries to double explains, so W cannot meet
  // the rows.
  if (surely_above(bound, objective * Ball(1 + kRoundedSize))) {
    reject(fmt::format("the bound is above the objective: every W that meets the rows has norm at least {}, W has {}",
                       bound.lower(), objective.upper()));
  }
  // W may miss rows by rounding, so the bound is compared with the multiple of W that meets them.
  const Ball distance = max(Ball(0), objective * (Ball(1) + Ball(on.result.scaling)) - bound);
  judge_gap(on, objective, distance);
}

void judge_certificate(const Case& on) {
  const Ball norm = on.arithmetic.frobenius_of_A(), weight = weighted_rhs(on);
  on.result.residual = norm.upper();
  if (!is_at_most(abs(weight - Ball(1)), Ball(kAgree), "rhs'dual"))
    reject(fmt::format("rhs'dual is {}; a certificate has 1", weight.middle()));
  on.result.norm_bound = norm.is_zero() ? kInfinity : (Ball(weight.lower()) / Ball(norm.upper())).lower();
  const MultiplierFindings found = on.shared != nullptr ? on.shared->multipliers() : find_in_multipliers(on);
  if (found.impossible) {
    on.result.norm_bound = kInfinity;
    return;
  }
  // norm_bound ≥ kInfeasibleFactor ω, written without a division by a number that may be zero.
  if (!is_at_most(Ball(kInfeasibleFactor) * found.need * norm, weight, "the certificate")) {
    reject(fmt::format(
        "the certificate proves norm at least {:.3g}; infeasible means {:.3g}, {:.0e} times what the rows need alone",
        on.result.norm_bound, (Ball(kInfeasibleFactor) * found.need).middle(), kInfeasibleFactor));
  }
}

}  // namespace attsvm::internal::proof
