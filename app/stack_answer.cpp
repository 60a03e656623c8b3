#include "stack_answer.h"

#include <fmt/format.h>

#include "io/hierarchy_data.h"
#include "options.h"

namespace attsvm::internal {
namespace {

std::string null_words(const BesideNull& number) {
  if (number.null.empty()) return fmt::format("{:.4f}", number.value);
  return fmt::format("{:.4f} ({:.3f})", number.value, number.mean());
}

}  // namespace

void print_hierarchy(const std::vector<HeadMargin>& heads, const HierarchySettings& settings) {
  fmt::print("  layer head queries  attention  correlation (null)  share of the largest margin (null)\n");
  for (const HeadMargin& head : heads) {
    fmt::print("  {:>5} {:>4} {:>7} {:>10.6f}  {:<18}  {}\n", head.layer, head.head, head.queries, head.attention,
               null_words(head.last_correlation), null_words(head.last_rho));
  }
  fmt::print("Each head beside the SVM of what it selects at {} positions; null: the mean of {} with random signs.\n",
             settings.askers == Askers::live ? "live" : "all", settings.null_draws);
}

ExitCode check_stack(Session& session, const AttentionTask& task, const std::string& path,
                     const HierarchySettings& settings, Threads& threads) {
  const StoredStack stored = load_stack(path, threads);
  with_place(path, [&] { require_stack_of(task, stored); });
  const Stopwatch watch;
  const std::vector<HeadMargin> heads = hierarchy(task, stored.records, settings, threads);
  if (session.json) {
    Json fields = hierarchy_json(stored.records, heads, settings);
    fields["settings"] = stored.settings;
    fields["threads"] = threads.count();
    Session::print_json("check", watch.seconds(), fields);
  } else {
    print_hierarchy(heads, settings);
  }
  return kDone;
}

}  // namespace attsvm::internal
