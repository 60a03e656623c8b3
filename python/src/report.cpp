#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "io/stored_run.h"
#include "solution.h"

namespace attsvm::python {
namespace {

/// What `given` holds by the names of ReportRequest's fields.
ReportRequest request_from(const std::vector<std::pair<std::string, Fields>>& runs,
                           const std::vector<std::pair<std::string, const Solution*>>& solutions, const Fields& given) {
  ReportRequest request{.title = nb::cast<std::string>(given["title"]),
                        .command = nb::cast<std::string>(given["command"]),
                        .token_names = nb::cast<std::vector<std::string>>(given["token_names"]),
                        .coordinates = nb::cast<std::vector<Index>>(given["coordinates"]),
                        .threshold = nb::cast<double>(given["threshold"])};
  for (const auto& [name, arrays] : runs) {
    const Fields& given_arrays = arrays;  // lambdas may not capture parts of a pair
    request.runs.push_back({name, with_place(name, [&] { return run_from(to_named_arrays(given_arrays)); })});
  }
  for (const auto& [name, solution] : solutions) request.solutions.push_back({name, solution->stored});
  return request;
}

/// Writes the page and returns its data as JSON.
std::string write_page(const std::string& path, const AttentionTask& task,
                       const std::vector<std::pair<std::string, Fields>>& runs,
                       const std::vector<std::pair<std::string, const Solution*>>& solutions, const Fields& given,
                       bool replace, int threads) {
  if (const std::string problem = page_problem(); !problem.empty()) throw InputError(problem);
  const ReportRequest request = request_from(runs, solutions, given);
  const nb::gil_scoped_release unlocked;
  Workspace workspace(threads);
  std::string data = report_data(task, request, workspace.threads());
  write_report(path, data, replace);
  return data;
}

/// The same for a stack.
std::string write_stack_page(const std::string& path, const AttentionTask& task, const std::string& name,
                             const Fields& arrays, const Fields& given, bool replace, int threads) {
  if (const std::string problem = page_problem(); !problem.empty()) throw InputError(problem);
  ReportStack shown{name, with_place(name, [&] { return stack_from(to_named_arrays(arrays)); })};
  shown.judged.seed = shown.stack.seed.value_or(0);
  const ReportRequest request{.title = nb::cast<std::string>(given["title"]),
                              .command = nb::cast<std::string>(given["command"])};
  const nb::gil_scoped_release unlocked;
  Workspace workspace(threads);
  std::string data = stack_report_data(task, shown, request, workspace.threads());
  write_report(path, data, replace);
  return data;
}

}  // namespace

void bind_report(nb::module_& module) {
  module.def("report", &write_page, nb::arg("path"), nb::arg("task"), nb::arg("runs"), nb::arg("solutions"),
             nb::arg("given"), nb::arg("replace"), nb::arg("threads"), "Writes the page and returns its data as JSON.");
  module.def("stack_report", &write_stack_page, nb::arg("path"), nb::arg("task"), nb::arg("name"), nb::arg("arrays"),
             nb::arg("given"), nb::arg("replace"), nb::arg("threads"),
             "Writes the page of a stack and returns its data as JSON.");
  module.def("page_problem", &page_problem, "Why this build cannot write a page; empty if it can.");
}

}  // namespace attsvm::python
