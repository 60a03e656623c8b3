#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"

namespace attsvm::python {
namespace {

Fields to_dict(const StudyResult& result) {
  nb::list findings;
  for (const Finding& finding : result.findings) {
    findings.append(nb::make_tuple(finding.paper, finding.ours, finding.why));
  }
  Fields facts;
  facts["name"] = result.name;
  facts["title"] = result.title;
  facts["published"] = result.published;
  facts["complete"] = result.complete;
  facts["cells"] = result.cells;
  facts["runs"] = result.runs;
  facts["draws"] = result.draws;
  facts["findings"] = findings;
  facts["files"] = result.files;
  return facts;
}

/// (studies, stopped, seed, page, figure problem, interrupted); `sweep` is a file, or empty.
Answer<Items, std::string, std::uint64_t, std::string, std::string, bool> run_studies(
    const std::vector<std::string>& names, const std::string& sweep_file, const std::string& folder, Index runs,
    std::optional<std::uint64_t> seed, bool replace, bool resume, double time_limit, const std::string& export_as,
    int threads, nb::object callback, nb::object bar) {
  Watch watch(std::move(callback), std::move(bar));
  const StudyOptions options{.folder = folder,
                             .runs = runs,
                             .seed = seed,
                             .replace = replace,
                             .resume = resume,
                             .time_limit = time_limit,
                             .export_as = export_as,
                             .progress = [&](const StudyProgress& now) {
                               return watch.stop([&] {
                                 return nb::make_tuple(now.study, now.cell, now.done, now.wanted, now.draws, now.share,
                                                       now.seconds, now.seconds_left);
                               });
                             }};
  StudyReport report;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    report = sweep_file.empty() ? reproduce(names, options, workspace.threads())
                                : sweep(sweep_file, options, workspace.threads());
  }
  watch.finish();
  nb::list studies;
  for (const StudyResult& result : report.studies) studies.append(to_dict(result));
  const char* const stopped = report.stop == StudyStop::finished     ? ""
                              : report.stop == StudyStop::time_limit ? "time limit"
                                                                     : "asked";
  return nb::make_tuple(studies, stopped, report.seed, report.page, report.figure_problem, watch.interrupted());
}

}  // namespace

void bind_studies(nb::module_& module) {
  module.def("run_studies", &run_studies, nb::arg("names"), nb::arg("sweep"), nb::arg("folder"), nb::arg("runs"),
             nb::arg("seed").none(), nb::arg("replace"), nb::arg("resume"), nb::arg("time_limit"), nb::arg("export_as"),
             nb::arg("threads"), nb::arg("callback").none(), nb::arg("bar").none());
  module.def(
      "studies",
      [] {
        Items list;
        for (const StudyFacts& facts : named_studies()) {
          list.append(nb::make_tuple(facts.name, facts.title, facts.setting, facts.paper, facts.published));
        }
        return list;
      },
      "(name, title, setting, what the paper shows, whether there is one) of each.");
}

}  // namespace attsvm::python
