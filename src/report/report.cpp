#include "attsvm/report.h"

#include "attsvm/error.h"
#include "base/refuse.h"
#include "io/file.h"
#include "io/json.h"
#include "report/heads_page.h"
#include "report/next_token_page.h"
#include "report/page.h"
#include "report/stack_page.h"
#include "report/task_page.h"

namespace attsvm {

using namespace internal;

namespace {

void require_fitting(const AttentionTask& task, const ReportRequest& request) {
  if (!request.token_names.empty() && static_cast<Index>(request.token_names.size()) != task.tokens())
    refuse("{} token names; the task has {} tokens", request.token_names.size(), task.tokens());
  for (const ReportRun& run : request.runs) {
    with_place(run.file, [&] { require_run_of(task, run.run); });
    if (run.run.heads > 1 && (request.runs.size() > 1 || !request.solutions.empty())) {
      refuse("{}: is a run of {} heads; a page shows all of them, or one beside other runs and solutions", run.file,
             run.run.heads);
    }
  }
  for (const ReportSolution& one : request.solutions) {
    if (one.answer.is_soft()) refuse("{}: pages show hard margins; this is a soft one", one.file);
  }
}

Json page_of(const AttentionTask& task, const ReportRequest& request, Threads& threads) {
  if (task.next_token()) return next_token_page(task, request, threads);
  const bool many = !request.runs.empty() && request.runs.front().run.heads > 1;
  return many ? heads_page(task, request, threads) : task_page(task, request, threads);
}

}  // namespace

std::string report_data(const AttentionTask& task, const ReportRequest& request, Threads& threads) {
  require_fitting(task, request);
  return json_text(page_of(task, request, threads));
}

std::string stack_report_data(const AttentionTask& task, const ReportStack& stack, const ReportRequest& request,
                              Threads& threads) {
  with_place(stack.file, [&] { require_stack_of(task, stack.stack); });
  return json_text(stack_page(task, stack, request, threads));
}

std::string page_problem() { return std::string(built_page().problem); }

void write_report(const std::string& path, const std::string& data, bool replace) {
  const std::string page = fill_page(data,
                                     "<p>This page draws its charts with a script, and scripts are disabled in this "
                                     "browser. The numbers are in the file.</p>");
  OutputFile file(path, replace);
  file.write(page);
  file.commit();
}

}  // namespace attsvm
