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
  kInterrupted = 130,
  kNobodyReads = 141  ///< what shells show for a program that SIGPIPE ended
};

/// One run of the program: the options that all verbs share, and the chosen verb.
struct Session {
  bool json = false, quiet = false, force = false;
  int threads = 0;
  Device device = Device::automatic;
  std::function<ExitCode()> verb;

  /// Adds a verb with the shared options; choosing it on the command line sets `verb` to `run`.
  CLI::App* add_verb(CLI::App& program, const std::string& name, const std::string& summary,
                     const std::string& teaching, std::function<ExitCode()> run);
  /// Adds -o and --force for verbs that write a file.
  static CLI::Option* add_output(CLI::App* verb, std::string& path, bool& force);

  /// Lets the threads use the GPU as --device says. InputError if it is to be used and there is none.
  void set_device(Threads& pool) const;

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

/// Accepts names of files and folders, but not "-".
CLI::Validator output_name();

/// Accepts numbers above 0.
CLI::Validator positive_number();

inline constexpr std::size_t kTerminal = 110;  ///< letters in a line of output

/// Breaks text at words into lines of at most `width` letters.
std::vector<std::string> wrapped(std::string_view text, std::size_t width = kTerminal);

/// Prints "  label  text", wrapped, with further lines below the text.
void print_field(std::string_view label, std::size_t label_width, std::string_view text);

/// Why this build has no playground; empty if it has one.
std::string playground_problem();
/// Writes the playground, which must be there. InputError if the file exists and `replace` is false, or cannot be
/// written.
void write_playground(const std::string& path, bool replace);

/// "12 s", "3 min 05 s"; "…" if it is not known.
std::string duration(double seconds);

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
  /// Writes the share of the work that is done, the text, and how long the rest will take: " 42 %  step 7 of 10; 3 s
  /// left". The share is NaN where nobody knows. Writes at most ten times per second; `text` is called only then.
  void show(double share, const std::function<std::string()>& text);
  void clear();

 private:
  bool visible_;
  double last_ = -1;
  double first_share_ = -1, first_time_ = 0;  // where the work was when it was first shown: a resumed run is part done
  Stopwatch watch_;
};

// The verbs, one per file; sweep is in reproduce.cpp.
void add_audit(CLI::App& program, Session& session);
void add_capacity(CLI::App& program, Session& session);
void add_check(CLI::App& program, Session& session);
void add_claims(CLI::App& program, Session& session);
void add_completion(CLI::App& program, Session& session);
void add_demo(CLI::App& program, Session& session);
void add_generate(CLI::App& program, Session& session);
void add_heads(CLI::App& program, Session& session);
void add_info(CLI::App& program, Session& session);
void add_path(CLI::App& program, Session& session);
void add_playground(CLI::App& program, Session& session);
void add_positions(CLI::App& program, Session& session);
void add_report(CLI::App& program, Session& session);
void add_reproduce(CLI::App& program, Session& session);
void add_solve(CLI::App& program, Session& session);
void add_split(CLI::App& program, Session& session);
void add_stack(CLI::App& program, Session& session);
void add_sweep(CLI::App& program, Session& session);
void add_train(CLI::App& program, Session& session);
void add_verify(CLI::App& program, Session& session);

}  // namespace attsvm::internal
