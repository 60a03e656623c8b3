#include "run_answer.h"

#include <fmt/format.h>

#include <cmath>

namespace attsvm::internal {

void add_shares(Json& fields, std::span<const MarginShares> all, const std::optional<ImpliedNorm>& implied) {
  fields["implied_norm"] = implied ? Json(implied->norm.name()) : Json(nullptr);
  fields["implied_norm_proven"] = implied && implied->proven;
  fields["implied_norm_why"] = implied ? Json(implied->why) : Json(nullptr);
  for (const char* name : {"rho", "rho_status", "rho_rises", "rho_exponent", "largest_margin"})
    fields[name] = Json::object();
  for (const MarginShares& shares : all) {
    const std::string norm = shares.norm.name();
    fields["rho"][norm] = shares.rho;
    fields["rho_status"][norm] = name_of(shares.status);
    fields["rho_rises"][norm] = shares.trend.rises ? Json(*shares.trend.rises) : Json(nullptr);
    fields["rho_exponent"][norm] = shares.trend.exponent;
    fields["largest_margin"][norm] = shares.margin;
  }
}

Json objective_json(const MarginSolution* solution) {
  return solution != nullptr && solution->status == MarginStatus::optimal ? Json(solution->objective) : Json(nullptr);
}

std::string objectives_text(const MarginSolution& frobenius, const std::optional<MarginSolution>& nuclear) {
  const std::string text = fmt::format("|W| = {:.9g} (Frobenius)", frobenius.objective);
  if (!nuclear) return text;
  if (nuclear->status != MarginStatus::optimal) return fmt::format("{}, nuclear: {}", text, name_of(nuclear->status));
  return fmt::format("{}, {:.9g} (nuclear, rank {})", text, nuclear->objective, nuclear->rank.rank);
}

std::string shares_text(std::span<const MarginShares> all, const std::optional<ImpliedNorm>& implied) {
  std::string text;
  for (const MarginShares& shares : all) {
    const bool named = implied && implied->norm == shares.norm;
    const double last = shares.rho.back();
    text += fmt::format("{}{}{} {}", text.empty() ? "" : "  ", shares.norm.name(), named ? "*" : "",
                        shares.status != MarginStatus::optimal ? fmt::format("- ({})", name_of(shares.status))
                        : std::isnan(last)                     ? "-"
                                                               : fmt::format("{:.6g}", last));
  }
  return text;
}

Json unsolved_json(const Unsolved& list) {
  Json fields = Json::object();
  for (const auto& [norm, status] : list) fields[norm] = name_of(status);
  return fields;
}

ExitCode end_check(const Session& session, const Unsolved& open, bool stopped) {
  bool stalled = false;
  for (const auto& [norm, status] : open) {
    if (status != MarginStatus::stalled) continue;
    stalled = true;
    session.warn(fmt::format("the SVM in norm {} stalled; what depends on it is not known", norm));
  }
  if (stopped) session.warn("stopped before everything was checked");
  if (Session::interrupted()) return kInterrupted;
  return stopped || stalled ? kLimit : kDone;
}

}  // namespace attsvm::internal
