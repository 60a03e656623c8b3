#include "session.h"

#include <fmt/format.h>

namespace attsvm {

CLI::App* Session::add_verb(CLI::App& program, const std::string& name, const std::string& summary,
                            const std::string& teaching, std::function<ExitCode()> run) {
  CLI::App* app = program.add_subcommand(name, summary);
  app->footer(teaching);
  app->add_flag("--json", json, "Print one JSON object on stdout, and nothing else there");
  app->add_flag("--quiet", quiet, "No progress, no warnings");
  app->add_option("--threads", threads, "Threads to use (default: all cores)")->check(CLI::Range(1, 1024));
  app->callback([this, run = std::move(run)] { verb = run; });
  return app;
}

CLI::Option* Session::add_output(CLI::App* verb, std::string& path, bool& force) {
  verb->add_flag("--force", force, "Replace the output file if it exists");
  return verb->add_option("-o,--out", path, "File to write");
}

void Session::warn(const std::string& line) const {
  if (!quiet) fmt::print(stderr, "attsvm: {}\n", line);
}

void Session::print_json(const std::string& command, double seconds, Json fields) {
  Json object{{"attsvm", ATTSVM_VERSION}, {"command", command}, {"seconds", seconds}};
  object.update(fields);
  fmt::print("{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace attsvm
