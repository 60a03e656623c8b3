#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/capacity.h"
#include "attsvm/files.h"
#include "attsvm/hierarchy.h"
#include "attsvm/stack_files.h"
#include "attsvm/verify.h"

namespace attsvm {

/// A solution to show, and the file it came from.
struct ReportSolution {
  std::string file;       ///< name to show to the reader
  StoredSolution answer;  ///< its contents
};

/// A training run to show, and the file it came from.
struct ReportRun {
  std::string file;  ///< name to show to the reader
  StoredRun run;     ///< its contents
};

/// A stack to show, and the file it came from.
struct ReportStack {
  std::string file;            ///< name to show to the reader
  StoredStack stack;           ///< its contents
  HierarchySettings judged{};  ///< how its heads are judged
};

/// The state of report_data(), as the progress callback gets it.
struct ReportProgress {
  double share = 0;  ///< of the parts of the report that are done
  std::string part;  ///< the one that is made, in words
};

/// What a report shows beside the task. Every field may be left out: the report then omits that part or solves for it.
struct ReportRequest {
  std::string title;                        ///< title of the page: the name of the task
  std::string command;                      ///< command line that makes the same page again
  std::string playground{};                 ///< address of a playground to link to; empty: none
  std::vector<ReportRun> runs{};            ///< the runs to show; the page follows the tokens of the first
  std::vector<ReportSolution> solutions{};  ///< the solutions to show
  std::vector<std::string> token_names{};   ///< (N), in the order of the task; empty: tokens are shown by number
  std::vector<Index> coordinates{};         ///< key coordinates that the plane view offers; empty: the first few
  double threshold = 1e-3;  ///< with a nonlinear head, tokens with at least this attention count as kept
  std::function<void(const ReportProgress&)> progress{};  ///< called often
};

/// The data of a report page as JSON text (docs/page.md): task, selection, verdict, solutions with their proofs, and
/// the runs. The selection is the first run's, else that of the first solution, else the task's own, else the optimal
/// tokens.
/// Its Frobenius and nuclear SVMs are solved unless the request has a solution for them. Every solution is verified.
/// A run of many heads is shown alone: each head beside the SVMs of what it selects, and as many in full as fit.
/// The same request gives the same bytes for any number of threads. InputError if task, run and solutions do not fit
/// together.
std::string report_data(const AttentionTask& task, const ReportRequest& request, Threads& threads);

/// The data of the page of a stack: each head of each layer beside the SVM of its own selection and its null, over
/// training, and the attention of all heads. Of the request, title, command and progress are used. InputError if the
/// stack is none of this task.
std::string stack_report_data(const AttentionTask& task, const ReportStack& stack, const ReportRequest& request,
                              Threads& threads);

/// The data of the page of what sizes can separate as JSON text: what capacity() found with these settings, which
/// should ask for `chances`.
std::string capacity_page(const CapacitySettings& settings, const Capacity& found, const std::string& command);

/// Facts about a task as JSON text: kind, sizes, head, labels, and whether the separability condition holds. The page
/// and `attsvm info` show these.
std::string task_facts(const AttentionTask& task);

/// Whether an .npz file is one that attsvm.torch.monitor wrote.
bool is_monitor_file(const std::string& path);

/// The data of the page of such a file as JSON text: every number of every head over the steps of training. InputError
/// names the file, the array and the rule.
std::string monitor_data(const std::string& path, const std::string& command, Threads& threads);

/// Why this build cannot write a page; empty if it can.
std::string page_problem();

/// Writes one HTML file: the page with `data` (from report_data, or audit_page) inside. InputError if page_problem() is
/// not empty, if the file exists and `replace` is false, or if it cannot be written.
void write_report(const std::string& path, const std::string& data, bool replace);

/// The names that a task file gives its tokens: the array x_token_names, (n,T) or (N) texts; empty if there is none.
/// InputError if it does not fit the task.
std::vector<std::string> load_token_names(const std::string& path, const AttentionTask& task, Threads& threads);

}  // namespace attsvm
