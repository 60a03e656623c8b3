#include "check_next_token.h"

#include <fmt/format.h>

#include <cmath>

#include "base/refuse.h"
#include "graph_answer.h"
#include "run_answer.h"

namespace attsvm::internal {
namespace {

std::string separable_words(const NextTokenCheck& check) {
  if (!check.decided) return "not decided: the solver did not settle it";
  if (!check.separable) return "no W keeps this order: attsvm solve writes the proof";
  return "yes: " + objectives_text(check.smallest, check.nuclear);
}

std::string finite_words(const NextTokenCheck& check) {
  if (!check.finite) return fmt::format("not computed: more than {} tokens are tied", FinitePart::kMostRows);
  if (check.finite->dimension() == 0) return "none: every component is a single token";
  return fmt::format("|W_fin| = {:.9g} in {}, where the loss of tied tokens is {:.6g}", check.finite->W().norm(),
                     counted(check.finite->dimension(), "dimension"), check.finite->loss());
}

}  // namespace

Json next_token_json(const AttentionTask& task, const NextTokenCheck& check, const std::optional<StoredRun>& run) {
  Json fields = graphs_json(task, check.graphs, true);
  fields["words"] = describe_cycles(task, check.graphs, 20);
  fields["separable"] = check.decided ? Json(check.separable) : Json(nullptr);
  fields["objective_fro"] = objective_json(&check.smallest);
  fields["objective_nuc"] = objective_json(check.nuclear ? &*check.nuclear : nullptr);
  fields["finite_dimension"] = check.finite ? Json(check.finite->dimension()) : Json(nullptr);
  fields["finite_norm"] = check.finite ? Json(check.finite->W().norm()) : Json(nullptr);
  fields["finite_loss"] = check.finite ? Json(check.finite->loss()) : Json(nullptr);
  if (!run) return fields;
  fields["record_step"] = run->record_step;
  fields["correlation_fro"] = check.correlation_fro;
  fields["correlation_nuc"] = check.correlation_nuc;
  fields["finite_distance"] = check.finite_distance.empty() ? Json(nullptr) : Json(check.finite_distance);
  add_shares(fields, check.shares, check.implied);
  return fields;
}

void print_next_token(const AttentionTask& task, const NextTokenCheck& check, const std::optional<StoredRun>& run,
                      const std::string& file) {
  constexpr std::size_t kWidth = 11, kShown = 12;
  fmt::print("{}: next-token prediction\n", printable(file));
  print_graphs(task, check.graphs);
  print_field("separable", kWidth, separable_words(check));
  print_field("finite part", kWidth, finite_words(check));
  if (!run || run->record.empty()) return;
  const std::size_t count = run->record.size(), stride = (count + kShown - 1) / kShown;
  fmt::print("  1 - correlation of the run's W with the graph SVM{}\n  {:>10} {:>12} {:>12}{}\n",
             check.finite_distance.empty() ? "" : ", and its distance from the finite part", "step", "Frobenius",
             "nuclear", check.finite_distance.empty() ? "" : fmt::format(" {:>12}", "finite part"));
  const auto one_minus_of = [](double c) { return std::isnan(c) ? "-" : fmt::format("{:.3g}", 1 - c); };
  for (std::size_t r = 0; r < count; ++r) {
    if (r + 1 != count && r % stride != 0) continue;
    fmt::print("  {:>10} {:>12} {:>12}{}\n", r < run->record_step.size() ? fmt::format("{}", run->record_step[r]) : "?",
               one_minus_of(check.correlation_fro[r]), one_minus_of(check.correlation_nuc[r]),
               check.finite_distance.empty() ? "" : fmt::format(" {:>12.3g}", check.finite_distance[r]));
  }
  print_field("rho", kWidth, shares_text(check.shares, check.implied));
}

}  // namespace attsvm::internal
