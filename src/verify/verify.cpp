#include "attsvm/verify.h"

#include <algorithm>
#include <limits>

#include "base/refuse.h"
#include "verify/rules.h"

// This library uses no code of the solvers, and of their results only the claims that it checks.

namespace attsvm::internal::proof {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kBoundShare = 0.6;  // of the work that is done before the bound, roughly

}  // namespace

Norm read_norm(const StoredSolution& claim) {
  try {
    return Norm::parse(claim.norm);
  } catch (const InputError& error) {
    reject(error.what());
  }
}

void judge(const Case& on) {
  on.result.arithmetic = on.arithmetic.name();
  if (on.claim.status == "infeasible" && !on.claim.w_only) {
    on.tell(0, "the multipliers");
    judge_certificate(on);
    return;
  }
  const std::vector<Ball> missed = judge_rows(on);
  on.tell(kRowShare, "the norm of W");
  if (on.claim.is_soft()) {
    judge_factors(on);
    judge_price(on, missed, on.claim.status == "optimal" ? judge_nearby(on) : Ball(0));
    return;
  }
  judge_objective(on);
  if (on.claim.w_only) return;
  judge_factors(on);
  if (on.claim.status == "optimal") judge_nearby(on);
  on.tell(kBoundShare, "the bound of the multipliers");
  judge_bound(on);
}

namespace {

void require_status(const StoredSolution& claim) {
  for (const std::string_view known : {"optimal", "infeasible", "limit", "stalled"}) {
    if (claim.status == known) return;
  }
  reject(fmt::format("status '{}' is unknown; must be optimal, infeasible, limit or stalled", claim.status));
}

}  // namespace

void check_contents(const Question& question, const Norm& norm, const StoredSolution& claim) {
  if (!claim.w_only) {
    require_status(claim);
    require_rows(question, claim);
    require_multipliers(question, claim);
    require_tolerance(claim);
  }
  if (claim.is_soft()) require_penalties(question, norm, claim);
  require_matrix(question, claim);
  if (!claim.w_only && claim.status == "infeasible") require_nothing(question, norm, claim);
}

namespace {

double work_of(const Question& question, const Norm& norm) {
  const auto d = static_cast<double>(question.d()), dz = static_cast<double>(question.dz());
  constexpr double kSpectralProducts = 10;  // products with W and with A in the proof of their spectra
  return question.work() + (norm.is_entrywise() ? 0 : kSpectralProducts * d * dz * std::min(d, dz));
}

}  // namespace

void forget(Verification& result) {
  result.objective = result.dual_objective = result.gap = result.violation = result.scaling = kNaN;
  result.homogeneous = result.distance = result.residual = result.norm_bound = kNaN;
  result.rank.reset();
}

namespace {

void prove(const AttentionTask& task, const StoredSolution& claim, const VerifySettings& settings,
           const TellVerify& tell, Verification& result) {
  const Norm norm = read_norm(claim);
  const Question question(task, claim);
  name_question(task, claim, difference_from_own(task, claim), result);
  check_contents(question, norm, claim);
  if (work_of(question, norm) > kLongWork) {
    const WorkingBits precision(kFirstBits);
    try {
      const auto arithmetic = bounded_arithmetic(question, claim, norm);
      judge({question, claim, settings, norm, *arithmetic, result, tell});
      return;
    } catch (const Undecided&) {
      forget(result);
    }
  }
  for (slong bits = kFirstBits;; bits *= 2) {
    const WorkingBits precision(bits);
    try {
      const auto arithmetic = ball_arithmetic(question, claim, norm);
      judge({question, claim, settings, norm, *arithmetic, result, tell});
      return;
    } catch (const Undecided& open) {
      if (bits == kMostBits) reject(fmt::format("{}: undecided even with {} bits", open.what, bits));
      forget(result);
    }
  }
}

}  // namespace
}  // namespace attsvm::internal::proof

namespace attsvm::internal {

void proof::require_tolerance(const VerifySettings& settings) {
  if (!(settings.tolerance > 0 && settings.tolerance < 1))
    refuse("tolerance = {}; must be > 0 and < 1", settings.tolerance);
}

Verification verify(const AttentionTask& task, const StoredSolution& solution, const VerifySettings& settings,
                    const TellVerify& tell) {
  proof::require_tolerance(settings);
  Verification result{.status = solution.status};
  proof::forget(result);
  try {
    proof::prove(task, solution, settings, tell, result);
    result.valid = true;
  } catch (const proof::Refusal& refusal) {
    result.reason = printable(refusal.reason);
  }
  return result;
}

std::string remark_on(const AttentionTask& task, const StoredSolution& solution) {
  const bool asks_for_0 = std::find(solution.rhs.begin(), solution.rhs.end(), 0.0) != solution.rhs.end();
  return asks_for_0 ? verify(task, solution, {}, {}).remark : "";  // it remarks on such rows alone
}

}  // namespace attsvm::internal

namespace attsvm {

Verification verify(const AttentionTask& task, const StoredSolution& solution, const VerifySettings& settings) {
  return internal::verify(task, solution, settings, {});
}

}  // namespace attsvm
