#pragma once

#include "arrays.h"
#include "attsvm/device.h"
#include "base/refuse.h"
#include "train/settings.h"
#include "watch.h"
#include "workspace.h"

namespace attsvm::python {

// One file per noun. Only the Python files of the package use these bindings; users see those files.
void bind_task(nb::module_& module);
void bind_solution(nb::module_& module);
void bind_run(nb::module_& module);
void bind_theory(nb::module_& module);
void bind_next_token(nb::module_& module);
void bind_studies(nb::module_& module);
void bind_capacity(nb::module_& module);
void bind_stack(nb::module_& module);
void bind_audit(nb::module_& module);
void bind_report(nb::module_& module);

/// A message with Python's arguments instead of the command line's options: force=True for --force, out= for --out.
std::string in_python(std::string_view message);

/// "cpu", "cuda" or else automatic. InputError if there is no GPU where one is asked for.
Device device_named(const std::string& name);

/// The value with this name. InputError, with the list of names, if there is none.
template <class Kind>
Kind named(std::string_view name, std::string_view setting) {
  if (const auto value = value_named<Kind>(name)) return *value;
  refuse("{} = {}; must be one of {}", setting, name, fmt::join(kNames<Kind>, " "));
}

/// The task's own selection, else the optimal tokens. InputError if it has neither selection nor head.
Selection choose(const AttentionTask& task);

/// As the command line's --select: None is the above; "file", "opt", or (q) tokens, or a (q,T) mask.
Selection choose(const AttentionTask& task, const nb::object& select);

/// One token of each query.
Array first_kept(const Selection& selection);

}  // namespace attsvm::python
