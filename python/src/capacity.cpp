#include <nanobind/stl/string.h>

#include "bindings.h"
#include "io/capacity_data.h"
#include "io/json.h"

namespace attsvm::python {
namespace {

/// (JSON of settings and answer, interrupted)
Answer<std::string, bool> find_capacity(const Fields& given, int threads, const std::string& device, nb::object bar) {
  const Device on = device_named(device);
  CapacitySettings settings;
  settings.n = nb::cast<Index>(given["n"]);
  settings.T = nb::cast<Index>(given["T"]);
  settings.d = nb::cast<Index>(given["d"]);
  settings.dz = nb::cast<Index>(given["dz"]);
  const auto attention = nb::cast<std::string>(given["attention"]);
  settings.pattern = attention == "self"     ? QueryPattern::self
                     : attention == "prompt" ? QueryPattern::prompt
                                             : QueryPattern::cross;
  if (attention != name_of(settings.pattern)) refuse("attention = {}; must be cross, self or prompt", attention);
  settings.width = nb::cast<Index>(given["width"]);
  settings.heads = nb::cast<Index>(given["heads"]);
  settings.draws = nb::cast<Index>(given["draws"]);
  settings.runs = nb::cast<Index>(given["runs"]);
  settings.wanted = nb::cast<double>(given["want"]);
  settings.seed = nb::cast<std::uint64_t>(given["seed"]);
  settings.time_limit = nb::cast<double>(given["time_limit"]);
  const auto page = nb::cast<std::string>(given["page"]), command = nb::cast<std::string>(given["command"]);
  const auto replace = nb::cast<bool>(given["replace"]);
  if (const std::string problem = page_problem(); !page.empty() && !problem.empty()) throw InputError(problem);
  settings.chances = !page.empty();
  Watch watch(nb::none(), std::move(bar));
  settings.progress = [&](const std::string& work, double share) {
    return watch.stop([&] { return nb::make_tuple(work, share); });
  };
  std::string text;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    workspace.threads().set_device(on);
    const Capacity found = capacity(settings, workspace.threads());
    text = json_text(capacity_json(settings, found));
    if (!page.empty()) write_report(page, capacity_page(settings, found, command), replace);
  }
  watch.finish();
  return nb::make_tuple(text, watch.interrupted());
}

}  // namespace

void bind_capacity(nb::module_& module) {
  module.def("capacity", &find_capacity, nb::arg("settings"), nb::arg("threads"), nb::arg("device"),
             nb::arg("bar").none(), "(JSON, interrupted)");
}

}  // namespace attsvm::python
