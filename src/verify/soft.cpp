// A soft margin: W may miss the rows ≥ 1 of query i by ξ_i, which costs C_i ξ_i beside ½‖W‖². Every W has a price, so
// no slack need be believed: it is computed from the rows. Multipliers that are ≥ 0 and of which those of a query's
// rows ≥ 1 add up to at most C_i prove that no W costs less than bᵀdual − ½‖A(dual)‖².
#include <algorithm>
#include <cmath>

#include "base/refuse.h"
#include "verify/rules.h"

namespace attsvm::internal::proof {

Ball price_of_moving(const Case& on) {
  if (!(on.result.distance > 0)) return Ball(0);
  const Ball size = on.arithmetic.frobenius_of_W();
  const Ball moved = Ball(on.result.distance) * size;
  Ball more = moved * size + moved * moved / Ball(2);
  for (const Group& group : on.question.groups()) {
    Ball longest;
    for (std::size_t k = group.first; k < group.first + group.count; ++k) {
      if (on.question.rows()[k].is_soft()) longest = max(longest, on.question.delta_size(on.question.rows()[k]));
    }
    more = more + Ball(on.claim.penalty[static_cast<std::size_t>(group.query)]) * longest *
                      on.question.zeta_size(group.query) * moved;
  }
  return more;
}

namespace {

/// Rule "penalties": what multipliers of a query's rows ≥ 1 add up to.
void require_within(const Case& on) {
  for (const Group& group : on.question.groups()) {
    Ball sum;
    for (std::size_t k = group.first; k < group.first + group.count; ++k) {
      if (on.question.rows()[k].is_soft()) sum = sum + Ball(on.claim.dual[k]);
    }
    const double most = on.claim.penalty[static_cast<std::size_t>(group.query)];
    if (!is_at_most(sum, Ball(most), fmt::format("the sum of the multipliers of query {}", group.query))) {
      reject(fmt::format("the multipliers of query {} add up to {}, above its penalty {}", group.query, sum.middle(),
                         most));
    }
  }
}

/// Rule "numbers stated": xi is what the stated slacks, which have been compared, ask for.
void compare_xi(const Case& on) {
  std::vector<double> asked(on.claim.xi.size(), 0);
  for (std::size_t k = 0; k < on.claim.slack.size(); ++k) {
    const Row& row = on.question.rows()[k];
    double& most = asked[static_cast<std::size_t>(row.query)];
    if (row.is_soft()) most = std::max(most, -on.claim.slack[k]);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!(std::abs(on.claim.xi[i] - asked[i]) <= kAgree * (1 + asked[i])))
      reject(fmt::format("xi[{}] is {}, stated as {}", i, asked[i], on.claim.xi[i]));
  }
}

}  // namespace

void require_penalties(const Question& question, const Norm& norm, const StoredSolution& claim) {
  if (question.task().next_token()) reject("a next-token task has no soft margin");
  if (!norm.is_frobenius()) reject(fmt::format("a soft margin is for the Frobenius norm, not for {}", claim.norm));
  if (claim.w_only) reject("a soft margin needs more than W");
  if (claim.status == "infeasible") reject("a soft margin always has a solution; it cannot be infeasible");
  const auto queries = static_cast<std::size_t>(question.task().queries());
  if (claim.penalty.size() != queries) reject("penalty does not have one entry per query");
  if (claim.xi.size() != queries) reject("xi does not have one entry per query");
  for (std::size_t i = 0; i < queries; ++i) {
    if (!(claim.penalty[i] > 0 && std::isfinite(claim.penalty[i])))
      reject(fmt::format("penalty[{}] = {}; must be a finite number above 0", i, claim.penalty[i]));
    if (!(claim.xi[i] >= 0 && std::isfinite(claim.xi[i])))
      reject(fmt::format("xi[{}] = {}; must be a finite number of at least 0", i, claim.xi[i]));
  }
}

void judge_price(const Case& on, const std::vector<Ball>& missed, const Ball& moving) {
  const Ball size = on.arithmetic.frobenius_of_W(), weighted = on.arithmetic.frobenius_of_A();
  Ball price = size * size / Ball(2);
  for (std::size_t i = 0; i < missed.size(); ++i) {
    if (!missed[i].is_zero()) price = price + Ball(on.claim.penalty[i]) * missed[i];
  }
  on.result.objective = price.upper();
  require_stated(price, on.claim.objective, price, "objective");
  compare_xi(on);
  require_within(on);
  const Ball demand = weighted_rhs(on), bound = demand - weighted * weighted / Ball(2);
  on.result.dual_objective = std::clamp(bound.lower(), 0.0, on.result.objective);
  require_stated(bound, on.claim.dual_objective, max(price, demand), "dual_objective");
  if (surely_above(bound, price * Ball(1 + kRoundedSize))) {
    reject(fmt::format("the bound is above the objective: every W costs at least {}, this one {}", bound.lower(),
                       price.upper()));
  }
  judge_gap(on, price, max(Ball(0), price + moving - bound));
}

}  // namespace attsvm::internal::proof
