#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "attsvm/attsvm.h"

namespace attsvm::internal {

using Json = nlohmann::ordered_json;

/// "1 array", "3 arrays", "2 queries".
std::string counted(std::int64_t count, const std::string& noun);

enum ExitCode : int {
  kDone = 0,
  kInternalError = 1,
  kBadInput = 2,
  kInfeasible = 3,
  kLimit = 4,
  kNotValid = 5,
  kInterrupted = 130
};

/// One run of the program: the options that all verbs share, and the chosen verb.
struct Session {
  bool json = false, quiet = false, force = false;
  int threads = 0;
  std::function<ExitCode()> verb;

  /// Adds a verb with the shared options; choosing it on the command line sets `verb` to `run`.
  CLI::App* add_verb(CLI::App& program, const std::string& name, const std::string& summary,
                     const std::string& teaching, std::function<ExitCode()> run);
  /// Adds -o and --force for verbs that write a file.
  static CLI::Option* add_output(CLI::App* verb, std::string& path, bool& force);

  /// Whether SIGINT (Ctrl-C) or SIGTERM arrived since watch_interrupts(), after which only a second one ends the
  /// program.
  static bool interrupted();
  static void watch_interrupts();

  /// Prints a line on stderr, unless --quiet was given.
  void warn(const std::string& line) const;
  /// Prints the one JSON object on stdout: version, command, seconds, then the fields.
  static void print_json(const std::string& command, double seconds, const Json& fields);
};

/// Wall time since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Accepts numbers above 0.
CLI::Validator positive_number();

/// Breaks text into lines that fit a terminal.
std::vector<std::string> wrapped(std::string_view text);

Json ties_json(const std::vector<Tie>& ties);

/// All kept tokens of every query.
Json sets_json(const Selection& selection);

/// A progress line that overwrites itself; silent where stderr is not a terminal or --quiet was given.
class ProgressLine {
 public:
  explicit ProgressLine(const Session& session);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Writes at most ten times per second; `text` is called only then.
  void show(const std::function<std::string()>& text);
  void clear();

 private:
  bool visible_;
  double last_ = -1;
  Stopwatch watch_;
};

// The verbs, one per file; sweep is in reproduce.cpp.
void add_check(CLI::App& program, Session& session);
void add_claims(CLI::App& program, Session& session);
void add_demo(CLI::App& program, Session& session);
void add_generate(CLI::App& program, Session& session);
void add_info(CLI::App& program, Session& session);
void add_path(CLI::App& program, Session& session);
void add_report(CLI::App& program, Session& session);
void add_reproduce(CLI::App& program, Session& session);
void add_solve(CLI::App& program, Session& session);
void add_sweep(CLI::App& program, Session& session);
void add_train(CLI::App& program, Session& session);
void add_verify(CLI::App& program, Session& session);

}  // namespace attsvm::internal
