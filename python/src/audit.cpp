#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "audit/audit_data.h"
#include "audit/head_fields.h"
#include "bindings.h"
#include "io/json.h"

namespace attsvm::python {
namespace {

HeadSet make_heads(const Fields& given) {
  HeadArrays arrays;
  for (const auto& [name, array] : to_named_arrays(given)) {
    for (const HeadField& field : head_fields()) {
      if (field.name == name) arrays.*field.member = array;
    }
  }
  const nb::gil_scoped_release unlocked;
  return HeadSet(std::move(arrays));
}

Array attention_of(const HeadSet& heads, Index head) {
  const RowMatrix keys = heads.keys(head), queries = heads.query_vectors(head);
  RowMatrix weights = RowMatrix::Zero(heads.queries(), heads.longest());
  for (Index i = 0; i < heads.queries(); ++i) {
    const Index sequence = heads.sequence(i), length = heads.length(sequence);
    Eigen::VectorXd logits = keys.middleRows(heads.offset(sequence), length) * queries.row(i).transpose();
    for (Index t = 0; t < length; ++t) {
      if (!heads.sees(head, i, t)) logits(t) = -std::numeric_limits<double>::infinity();
    }
    Eigen::ArrayXd parts = (logits.array() - logits.maxCoeff()).exp();
    for (Index t = 0; t < length; ++t) {  // Eigen's exp(−∞) may be a tiny number
      if (!heads.sees(head, i, t)) parts(t) = 0;
    }
    if (parts.sum() > 0) weights.row(i).head(length) = (parts / parts.sum()).transpose();
  }
  return Array::own(weights);
}

AuditSettings settings_of(const Fields& given) {
  AuditSettings settings;
  settings.queries = nb::cast<Index>(given["queries"]);
  settings.drop = nb::cast<double>(given["drop"]);
  settings.nulls = nb::cast<Index>(given["nulls"]);
  settings.tolerance = nb::cast<double>(given["tolerance"]);
  settings.null_tolerance = nb::cast<double>(given["null_tolerance"]);
  settings.seed = nb::cast<std::uint64_t>(given["seed"]);
  settings.only = nb::cast<std::vector<Index>>(given["only"]);
  settings.time_limit = nb::cast<double>(given["time_limit"]);
  return settings;
}

/// (value, mean, deviation, z, draws)
nb::tuple rho_of(const HeadSet& heads, Index head, bool hide_sinks, const std::string& norm, Index queries, double drop,
                 Index nulls, std::uint64_t seed, int threads) {
  NullFacts facts;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    facts = head_rho(heads, head, hide_sinks, Norm::parse(norm),
                     {.queries = queries, .drop = drop, .nulls = nulls, .seed = seed}, workspace.threads());
  }
  return nb::make_tuple(facts.value, facts.mean, facts.deviation, facts.z, facts.draws);
}

/// (JSON of the heads, JSON of the rest of the page, arrays, complete, interrupted)
Answer<std::string, std::string, Fields, bool, bool> run_audit(const HeadSet& heads, const Fields& given,
                                                               const std::string& journal, int threads,
                                                               nb::object callback, nb::object bar) {
  AuditSettings settings = settings_of(given);
  Watch watch(std::move(callback), std::move(bar));
  Audit result;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    std::optional<AuditJournal> kept;
    if (!journal.empty()) settings.journal = &kept.emplace(journal, heads, settings, false);
    std::atomic<Index> done = 0, count = heads.heads();
    bool stopped = false;
    watch.beside(
        [&](const std::atomic<bool>& stop) {
          settings.progress = [&](const AuditProgress& now) {
            done = now.done;
            count = now.heads;
            return stopped = stop.load();
          };
          result = audit(heads, settings, workspace.threads());
        },
        [&] { return nb::make_tuple(done.load(), count.load()); });
    if (kept && !stopped && reused_heads(*kept, heads, settings) == kept->found()) kept->remove();
  }
  watch.finish();
  return nb::make_tuple(json_text(audit_json(result)), json_text(page_lead(heads, result, settings, "", "")),
                        to_python(audit_arrays(result)), result.complete, watch.interrupted());
}

}  // namespace

void bind_audit(nb::module_& module) {
  nb::class_<HeadSet>(module, "Heads", "Keys and queries of attention heads.")
      .def_prop_ro("heads", &HeadSet::heads)
      .def_prop_ro("tokens", &HeadSet::tokens)
      .def_prop_ro("queries", &HeadSet::queries)
      .def_prop_ro("size", &HeadSet::size)
      .def("names",
           [](const HeadSet& heads) {
             std::vector<std::string> names;
             for (Index h = 0; h < heads.heads(); ++h)
               names.push_back(fmt::format("{}.{}", heads.layer(h), heads.number(h)));
             return names;
           })
      .def("arrays", [](const HeadSet& heads) { return to_python(head_arrays(heads)); })
      .def("attention", [](const HeadSet& heads, Index head) { return to_python(attention_of(heads, head)); });
  module.def("make_heads", &make_heads, nb::arg("arrays"), "Heads from arrays under the names that files use.");
  module.def(
      "load_heads",
      [](const std::string& path, int threads) {
        const nb::gil_scoped_release unlocked;
        Workspace workspace(threads);
        return load_heads(path, workspace.threads());
      },
      nb::arg("path"), nb::arg("threads") = 0);
  module.def(
      "head_task",
      [](const HeadSet& heads, Index head, bool hide_sinks, Index queries, double drop) {
        return head_task(heads, head, hide_sinks, {.queries = queries, .drop = drop});
      },
      nb::arg("heads"), nb::arg("head"), nb::arg("hide_sinks"), nb::arg("queries"), nb::arg("drop"));
  module.def(
      "head_kinds",
      [](const HeadSet& heads, Index head, bool hide_sinks) {
        nb::list kinds;
        for (const KindShare& one : head_kinds(heads, head, hide_sinks))
          kinds.append(nb::make_tuple(name_of(one.kind), one.share, one.words));
        return kinds;
      },
      nb::arg("heads"), nb::arg("head"), nb::arg("hide_sinks"), "(kind, share, words), the largest share first.");
  module.def("head_rho", &rho_of, nb::arg("heads"), nb::arg("head"), nb::arg("hide_sinks"), nb::arg("norm"),
             nb::arg("queries"), nb::arg("drop"), nb::arg("nulls"), nb::arg("seed"), nb::arg("threads"));
  module.def("audit", &run_audit, nb::arg("heads"), nb::arg("settings"), nb::arg("journal"), nb::arg("threads"),
             nb::arg("callback").none(), nb::arg("bar").none());
  module.def(
      "write_audit_page",
      [](const std::string& path, const std::string& data, bool replace) {
        const nb::gil_scoped_release unlocked;
        write_report(path, json_text(Json::parse(data)), replace);  // written as the program writes numbers
      },
      nb::arg("path"), nb::arg("data"), nb::arg("replace"));
}

}  // namespace attsvm::python
