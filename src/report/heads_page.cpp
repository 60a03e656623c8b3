#include "report/heads_page.h"

#include <fmt/format.h>

#include "attsvm/version.h"
#include "io/json.h"
#include "report/task_page.h"
#include "theory/head_division.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kReportBytes = 20'000'000;  // most bytes of heads in full; the first is always there

/// The page of one head, as if it were the only one.
ReportRequest request_of(const ReportRequest& all, Index head) {
  const ReportRun& run = all.runs.front();
  ReportRequest one{.title = fmt::format("{}, head {}", all.title, head),
                    .command = all.command,
                    .runs = {{fmt::format("{}, head {}", run.file, head), head_of(run.run, head)}},
                    .token_names = all.token_names,
                    .coordinates = all.coordinates,
                    .threshold = all.threshold};
  if (all.progress) {
    one.progress = [&all, head, heads = run.run.heads](const ReportProgress& now) {
      all.progress({.share = (static_cast<double>(head) + now.share) / static_cast<double>(heads),
                    .part = fmt::format("head {}: {}", head, now.part)});
    };
  }
  return one;
}

/// What the view of all heads shows of one: its curves, without what is drawn of it in full.
Json as_run(const Json& report, Index head) {
  Json run = report.at("runs").front();
  for (const char* name : {"directions", "attention", "map", "margins"}) run.erase(name);
  run["file"] = fmt::format("head {}", head);
  run["optimal"] = report.at("queries").at("optimal");
  return run;
}

}  // namespace

Json heads_page(const AttentionTask& task, const ReportRequest& request, Threads& threads) {
  const StoredRun& run = request.runs.front().run;
  Json runs = Json::array(), reports = Json::array();
  std::size_t bytes = 0;
  for (Index head = 0; head < run.heads; ++head) {
    Json report = task_page(task, request_of(request, head), threads);
    runs.push_back(as_run(report, head));
    bytes += json_text(report).size();
    if (head == 0 || bytes <= kReportBytes) reports.push_back(std::move(report));
  }
  std::vector<Index> selected;
  for (const Json& one : runs) {
    for (const Json& kept : one.at("kept")) selected.push_back(kept.front().get<Index>());
  }
  const HeadDivision division = division_of(selected, run.heads);
  return {{"kind", "heads"},
          {"attsvm", ATTSVM_VERSION},
          {"title", request.title},
          {"command", request.command},
          {"task", Json::parse(task_facts(task))},
          {"file", request.runs.front().file},
          {"distinct_selections", division.distinct},
          {"tokens_per_query", division.tokens_per_query},
          {"runs", std::move(runs)},
          {"reports", std::move(reports)}};
}

}  // namespace attsvm::internal
