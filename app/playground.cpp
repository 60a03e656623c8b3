#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/refuse.h"
#include "io/file.h"
#include "io/output.h"
#include "options.h"
#include "report/page.h"

namespace attsvm::internal {
namespace {

ExitCode run_playground(const Session& session, const std::string& out) {
  if (const std::string problem = playground_problem(); !problem.empty()) throw InputError(problem);
  require_writable(out, session.force);
  const Stopwatch watch;
  write_playground(out, session.force);
  const std::uintmax_t bytes = std::filesystem::file_size(out);
  if (session.json) {
    Session::print_json("playground", watch.seconds(),
                        {{"file", out}, {"bytes", bytes}, {"seed", nullptr}, {"threads", 1}});
  } else {
    fmt::print("{}: a page to open in a browser, {:.0f} kB\n", printable(out), static_cast<double>(bytes) / 1000);
  }
  return kDone;
}

}  // namespace

std::string playground_problem() { return std::string(built_playground().problem); }

void write_playground(const std::string& path, bool replace) {
  OutputFile file(path, replace);
  file.write(std::string(built_playground().html));
  file.commit();
}

void add_playground(CLI::App& program, Session& session) {
  auto out = std::make_shared<std::string>();
  CLI::App* verb = session.add_verb(program, "playground", "Write a page on which tokens can be dragged", R"(Examples:
  attsvm playground -o playground.html
The page is one file that works from disk. It holds the solvers and the trainer of this program, compiled for
browsers: the SVM follows the pointer, and training runs beside it. Its address holds the task on screen.)",
                                    [&session, out] { return run_playground(session, *out); });
  Session::add_output(verb, *out, session.force)->required();
}

}  // namespace attsvm::internal
