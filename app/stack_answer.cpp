#include "stack_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/hierarchy_data.h"
#include "options.h"
#include "run_answer.h"

namespace attsvm::internal {
namespace {

std::string null_words(const BesideNull& number) {
  if (!std::isfinite(number.value)) return "-";
  if (number.null.empty()) return fmt::format("{:.4f}", number.value);
  return fmt::format("{:.4f} ({:.3f})", number.value, number.mean());
}

/// How many matrices the null of the heads has: those whose SVM was solved.
std::string null_sizes(const std::vector<HeadMargin>& heads) {
  std::vector<std::size_t> sizes;
  for (const HeadMargin& head : heads) {
    if (!head.solution.W.isZero(0)) sizes.push_back(head.last_rho.null.size());
  }
  if (sizes.empty()) return "0";
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return *least == *most ? fmt::format("{}", *least) : fmt::format("{} to {}", *least, *most);
}

Unsolved unsolved_heads(const std::vector<HeadMargin>& heads) {
  Unsolved open;
  for (const HeadMargin& head : heads) {
    if (!is_settled(head.solution.status))
      open.emplace(fmt::format("{} of layer {}, head {}", head.solution.norm.name(), head.layer, head.head),
                   head.solution.status);
  }
  return open;
}

bool all_complete(const std::vector<HeadMargin>& heads) {
  return std::all_of(heads.begin(), heads.end(), [](const HeadMargin& head) { return head.complete; });
}

}  // namespace

std::function<bool(const HierarchyProgress&)> watch_judging(ProgressLine& line) {
  return [&line](const HierarchyProgress& now) {
    line.show(static_cast<double>(now.done) / static_cast<double>(now.solves),
              [&] { return fmt::format("judging: SVM {} of {}", now.done, now.solves); });
    return Session::interrupted();
  };
}

ExitCode end_hierarchy(const Session& session, const std::vector<HeadMargin>& heads) {
  return end_check(session, unsolved_heads(heads), !all_complete(heads));
}

void print_hierarchy(const std::vector<HeadMargin>& heads, const HierarchySettings& settings) {
  fmt::print("  layer head queries  attention  correlation (null)  share of the largest margin (null)\n");
  for (const HeadMargin& head : heads) {
    fmt::print("  {:>5} {:>4} {:>7} {:>10}  {:<18}  {}\n", head.layer, head.head, head.queries,
               std::isfinite(head.attention) ? fmt::format("{:.6f}", head.attention) : "-",
               null_words(head.last_correlation), null_words(head.last_rho));
  }
  fmt::print(
      "Each head beside the SVM of what it selects at {} positions; null: the mean of {} with random signs, seed "
      "{}.\n",
      settings.askers == Askers::live ? "live" : "all", null_sizes(heads), settings.seed);
}

ExitCode check_stack(Session& session, const AttentionTask& task, const std::string& path,
                     const StackCheckOptions& options, Threads& threads) {
  const StoredStack stored = load_stack(path, threads);
  with_place(path, [&] { require_stack_of(task, stored); });
  HierarchySettings settings = options.judged;
  settings.seed = options.seed.value_or(stored.seed.value_or(0));
  Session::watch_interrupts();
  const Stopwatch watch;
  ProgressLine line(session);
  settings.progress = watch_judging(line);
  const std::vector<HeadMargin> heads = hierarchy(task, stored.records, settings, threads);
  const double seconds = watch.seconds();
  line.clear();
  if (session.json) {
    Json fields = hierarchy_json(stored.records, heads, settings);
    fields["settings"] = stored.settings;
    fields["unsolved"] = unsolved_json(unsolved_heads(heads));
    fields["time_limit"] = settings.time_limit;
    fields["run"] = path;
    fields["seed"] = settings.seed;
    fields["threads"] = threads.count();
    Session::print_json("check", seconds, fields);
  } else {
    print_hierarchy(heads, settings);
  }
  return end_hierarchy(session, heads);
}

}  // namespace attsvm::internal
