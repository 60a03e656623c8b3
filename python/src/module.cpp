#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "base/out_of_memory.h"
#include "base/simd.h"
#include "bindings.h"
#include "io/cut_files.h"
#include "program.h"

namespace {

int run_command(const std::vector<std::string>& words) {
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const nanobind::gil_scoped_release unlocked;
  return attsvm::internal::run_program(static_cast<int>(arguments.size()), arguments.data());
}

/// Throws again what `thrown` holds, if it is an InputError, as the Python exception `kind`.
void raise_input_error(const std::exception_ptr& thrown, void* kind) {
  try {
    std::rethrow_exception(thrown);
  } catch (const attsvm::InputError& error) {
    PyErr_SetString(static_cast<PyObject*>(kind), attsvm::python::in_python(error.what()).c_str());
  }
}

std::array<char, 4096> cut_file{};  // the name of one that became shorter than it was

/// Raises InputError in the main thread as soon as that runs Python again, as Python does with its own signals, unless
/// the call that found the file cut has raised it by then. Until then the thread that looked for the lost part reads
/// zeros.
void raise_soon(const char* path) {
  std::strncpy(cut_file.data(), path, cut_file.size() - 1);
  attsvm::python::note_cut_file();
  Py_AddPendingCall(
      [](void*) {
        if (!attsvm::python::take_cut_file()) return 0;
        const std::string message =
            std::string(cut_file.data()) + ": became shorter while it was in use; what was loaded from it is lost";
        const nanobind::object error = nanobind::module_::import_("attsvm").attr("InputError");
        PyErr_SetString(error.ptr(), message.c_str());
        return -1;
      },
      nullptr);
}

}  // namespace

namespace attsvm::python {

Device device_named(const std::string& name) {
  const Device device = name == "cpu" ? Device::cpu : name == "cuda" ? Device::cuda : Device::automatic;
  if (device == Device::cuda && !device_report().found)
    throw InputError("device = 'cuda', but there is no GPU to use; found " + device_report().words);
  return device;
}

std::string in_python(std::string_view message) {
  constexpr std::array<std::string_view, 2> kFlags{"force", "resume"};
  std::string text;
  while (!message.empty()) {
    const auto at = message.find("--");
    text += message.substr(0, at);
    if (at == std::string_view::npos) break;
    message.remove_prefix(at + 2);
    const auto* const stop = std::find_if_not(message.begin(), message.end(),
                                              [](unsigned char c) { return std::isalpha(c) != 0 || c == '-'; });
    const auto end = static_cast<std::size_t>(stop - message.begin());
    std::string name(message.substr(0, end));
    if (name.empty() || (!text.empty() && text.back() != ' ' && text.back() != '(')) {
      text += "--";
      continue;
    }
    message.remove_prefix(end);
    std::replace(name.begin(), name.end(), '-', '_');
    text += name + (std::find(kFlags.begin(), kFlags.end(), name) != kFlags.end() ? "=True" : "=");
  }
  return text;
}

}  // namespace attsvm::python

NB_MODULE(_core, module) {
  using namespace attsvm::python;
  attsvm::internal::on_cut_file(&raise_soon);
  attsvm::internal::throw_where_libraries_lack_memory();
  module.doc() = "The C++ library as the package attsvm uses it.";
  module.attr("version") = ATTSVM_VERSION;
  nb::exception<attsvm::InputError> error(module, "InputError", PyExc_ValueError);
  nb::register_exception_translator(&raise_input_error, error.ptr());
  error.attr("__doc__") = "Invalid input. The message names the argument or file, the place, the value and the rule.";
  module.def("run_command", &run_command, nb::arg("words"),
             "The command line; words[0] is the program's name. Returns the exit code.");
  module.def("instructions", &attsvm::internal::chosen_instructions, "The vector instructions in use.");
  module.def(
      "write_npz",
      [](const std::string& path, const Fields& arrays, bool replace) {
        const attsvm::NamedArrays named = to_named_arrays(arrays);
        const nb::gil_scoped_release unlocked;
        attsvm::write_npz(path, named, replace);
      },
      nb::arg("path"), nb::arg("arrays"), nb::arg("replace"));
  module.def(
      "read_npz",
      [](const std::string& path, const std::string& prefix, int threads) {
        attsvm::NamedArrays named;
        {
          const nb::gil_scoped_release unlocked;
          Workspace workspace(threads);
          const attsvm::NpzFile file(path);
          for (const std::string& name : file.names()) {
            if (name.starts_with(prefix)) named.emplace_back(name, file.read(name, workspace.threads()));
          }
        }
        return to_python(named);
      },
      nb::arg("path"), nb::arg("prefix") = "", nb::arg("threads") = 0, "The arrays whose names begin with the prefix.");
  module.def(
      "names_in", [](const std::string& path) { return attsvm::NpzFile(path).names(); }, nb::arg("path"),
      "Names of the arrays of a file.");
  bind_task(module);
  bind_solution(module);
  bind_run(module);
  bind_theory(module);
  bind_next_token(module);
  bind_studies(module);
  bind_capacity(module);
  bind_stack(module);
  bind_audit(module);
  bind_report(module);
}
