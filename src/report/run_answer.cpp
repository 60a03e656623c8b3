#include "report/run_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "margin/stored_solution.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

/// "99.92 %", with as many digits as tell it from 100 %.
std::string share_words(double rho) {
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(std::max(1 - rho, 1e-12)))) - 1, 0, 10);
  return fmt::format("{:.{}f} %", 100 * rho, digits);
}

/// From here up, 1 - rho ~ t^exponent falls by less than a fifth while t grows tenfold.
constexpr double kStalledExponent = -0.1;

/// The norm in which the run has the largest share, for runs for which theory names none.
std::string closest_words(const Check& check) {
  const MarginShares* closest = nullptr;
  for (const MarginShares& shares : check.shares) {
    const bool better = closest == nullptr || shares.rho.back() > closest->rho.back();
    if (shares.status == MarginStatus::optimal && !std::isnan(shares.rho.back()) && better) closest = &shares;
  }
  return closest == nullptr ? ""
                            : fmt::format(
                                  "; of the SVMs below, it is closest to that of least {}: {} of the "
                                  "largest margin",
                                  norm_words(closest->norm.name()), share_words(closest->rho.back()));
}

/// The step of the first point from which on the run keeps its tokens ahead; -1: all points of the last decade do.
Index turned_late(const MarginShares& shares, const StoredRun& run) {
  Index since = -1;
  for (std::size_t r = 0; r < run.record_step.size() && r < shares.rho.size(); ++r) {
    if (10 * run.record_step[r] >= run.record_step.back() && !(shares.rho[r] > 0) && r + 1 < run.record_step.size())
      since = run.record_step[r + 1];
  }
  return since;
}

}  // namespace

RunAnswer answer_of(const Check& check, const StoredRun& run) {
  if (check.decided && !check.separable)
    return {"it does not converge to an SVM: no W keeps the tokens that it selects ahead", false, nullptr, nullptr};
  const bool untold = !rule_from_words(run.settings);  // the file does not say how the run was trained
  if (!check.implied && !untold)
    return {"theory names no SVM for this training" + closest_words(check), nullptr, nullptr, nullptr};
  const bool sets = !check.selection.is_single();
  // The Frobenius norm says at least whether the direction of an untold run settles at all.
  const Norm named = check.implied ? check.implied->norm : Norm::frobenius();
  const MarginShares* of = nullptr;
  for (const MarginShares& shares : check.shares) {
    if (shares.norm == named && shares.status == MarginStatus::optimal) of = &shares;
  }
  const Json predicted = check.implied ? Json(named.name()) : Json(nullptr);
  if (of == nullptr)
    return {"it cannot be said whether it converges: the SVM is not solved", nullptr, predicted, nullptr};
  const std::string target =
      fmt::format("the {} of least {} for {}{}", sets ? "Gen-SVM" : "SVM", norm_words(of->norm.name()),
                  sets ? "the tokens that it keeps" : "the tokens that it selects",
                  check.optimal_selection ? ", the optimal ones" : "");
  double best = 0;
  std::size_t peak = 0;
  for (std::size_t r = 0; r < of->rho.size(); ++r) {
    if (!(of->rho[r] > best)) continue;
    best = of->rho[r];
    peak = r;
  }
  const double rho = of->rho.back(), exponent = of->trend.exponent;
  const Index steps = run.record_step.empty() ? 0 : run.record_step.back();
  const std::string now =
      fmt::format("{} of the largest margin after {} {}", share_words(rho), steps, steps == 1 ? "step" : "steps");
  const bool arrived = 1 - rho < 1e-6 && !sets;
  if (arrived) return {fmt::format("it converged to {}: {}", target, now), true, predicted, of->trend.exponent};
  if (std::isnan(rho) || !of->trend.rises)
    return {fmt::format("too few recorded steps to say whether it converges to {}: {}", target, now), nullptr,
            predicted, nullptr};
  if (const Index since = turned_late(*of, run); since >= 0 && rho > 0)
    return {fmt::format(
                "it selects these tokens since step {} at the earliest, too late to say whether it converges to {}: "
                "{}",
                since, target, now),
            nullptr, predicted, nullptr};
  // As where plain arithmetic follows rounding noise once gradients underflow.
  if (1 - rho > 2 * (1 - best) && peak < run.record_step.size())
    return {fmt::format("until step {} it approached {}, to {} of the largest margin, and then it moved away: {}",
                        run.record_step[peak], target, share_words(best), now),
            false, predicted, nullptr};
  if (!*of->trend.rises || rho <= 0)
    return {fmt::format("it does not approach {}: {}, and not rising", target, now), false, predicted, nullptr};
  if (exponent > kStalledExponent && exponent < 0 && rho < 0.999)
    return {
        fmt::format("it has all but stopped on its way to {}: {}; the rest falls like t^{:.2f}", target, now, exponent),
        nullptr, predicted, exponent};
  const std::string pace = exponent < 0 ? fmt::format("; the rest falls like t^{:.2f}", exponent)
                                        : "; the rest falls, too irregularly to fit";
  return {fmt::format("it {} {}: {}{}", rho > 0.9 ? "converges to" : "turns slowly towards", target, now, pace), true,
          predicted, exponent < 0 ? Json(exponent) : Json()};
}

}  // namespace attsvm::internal
