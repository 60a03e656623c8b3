#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/stored_run.h"
#include "attsvm/verify.h"

namespace attsvm {

/// An answer to show, and where it came from.
struct ReportSolution {
  std::string file;  ///< as the reader knows it
  StoredSolution answer;
};

struct ReportRun {
  std::string file;
  StoredRun run;
};

/// What a report is about. Only the task is needed: what is left out is not shown, or solved for.
struct ReportRequest {
  std::string title;    ///< of the page: the task as the reader knows it
  std::string command;  ///< what makes the same page again
  std::optional<ReportRun> run{};
  std::vector<ReportSolution> solutions{};
  std::vector<std::string> token_names{};  ///< (N), in the order of the task; empty: tokens have numbers alone
  std::vector<Index> coordinates{};        ///< of the keys, to choose from in the plane; empty: the first few
  double threshold = 1e-3;                 ///< nonlinear heads keep the tokens with at least this attention
};

/// The data of a report page as JSON text (docs/page.md): task, selection, verdict, answers with their proofs, and the
/// run. The selection is the run's, else that of the first solution, else the task's own, else the optimal tokens; its
/// Frobenius and nuclear SVMs are solved where no solution given answers them. Every answer is verified. The same
/// request gives the same bytes for any number of threads. InputError where task, run and solutions do not fit
/// together.
std::string report_data(const AttentionTask& task, const ReportRequest& request, Threads& threads);

/// What a task is, as JSON text: kind, sizes, head, labels, and whether its size makes it separable. The page and
/// attsvm info say the same.
std::string task_facts(const AttentionTask& task);

/// Why this build has no page; empty: it has one.
std::string page_problem();

/// Writes the page with its data inside as one file. InputError if this build has no page, or the file cannot be
/// written.
void write_report(const std::string& path, const std::string& data, bool replace);

/// The names that a task file gives its tokens: the array x_token_names, (n,T) or (N) texts; empty where there is none.
/// InputError if it does not fit the task.
std::vector<std::string> load_token_names(const std::string& path, const AttentionTask& task, Threads& threads);

}  // namespace attsvm
