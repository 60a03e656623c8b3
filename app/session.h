#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "attsvm/attsvm.h"

namespace attsvm {

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

/// One run of the program: the options that every verb has, and the verb that was asked for.
struct Session {
  bool json = false, quiet = false, force = false;
  int threads = 0;
  std::function<ExitCode()> verb;

  /// A verb with the common options; `run` is called when it was asked for.
  CLI::App* add_verb(CLI::App& program, const std::string& name, const std::string& summary,
                     const std::string& teaching, std::function<ExitCode()> run);
  /// The option -o for verbs that write a file.
  static CLI::Option* add_output(CLI::App* verb, std::string& path, bool& force);

  /// Whether Ctrl-C (or SIGTERM) came; from the first call of watch_interrupts() on it no longer ends the program.
  static bool interrupted();
  static void watch_interrupts();

  /// A line for the reader, on stderr; nothing when --quiet.
  void warn(const std::string& line) const;
  /// The one JSON object on stdout: version, command, seconds, then the fields.
  static void print_json(const std::string& command, double seconds, const Json& fields);
};

/// Wall time since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Accepts numbers above 0, and says so when it does not.
CLI::Validator positive_number();

/// Makes a folder for output, unless it is there. InputError if it cannot be.
void make_folder(const std::string& path);

/// Text as lines that fit a terminal.
std::vector<std::string> wrapped(std::string_view text);

Json ties_json(const std::vector<Tie>& ties);

/// All kept tokens of every query.
Json sets_json(const Selection& selection);

/// One line on a terminal that is written over; silent where stderr is not a terminal or --quiet was given.
class ProgressLine {
 public:
  explicit ProgressLine(const Session& session);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// At most ten times a second.
  void show(const std::function<std::string()>& text);
  void clear();

 private:
  bool visible_;
  double last_ = -1;
  Stopwatch watch_;
};

// The verbs, one a file.
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

}  // namespace attsvm
