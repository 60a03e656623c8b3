#include "program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "base/nearest.h"
#include "base/out_of_memory.h"
#include "io/cut_files.h"
#include "options.h"
#include "ranks/launcher.h"
#include "ranks/ranks.h"

namespace attsvm::internal {
namespace {

constexpr const char* kTeaching = R"(Examples:
  attsvm demo                     train, solve and check a built-in task, in seconds
  attsvm generate random --n 6 --T 8 --d 10 --seed 1 -o task.npz
                                  draw a task as the published experiments do
  attsvm generate separable --n 100 --T 32 --d 64 --rank 4 -o head.npz
                                  tokens selected by a hidden W of rank 4
  attsvm info task.npz            describe the file and check that it is valid
  attsvm solve task.npz -o solution.npz
                                  the smallest W that keeps the optimal tokens, with a proof
  attsvm verify task.npz solution.npz
                                  check it independently
  attsvm train task.npz -o run.npz
                                  train attention on it; the direction of its W tends to that W
  attsvm check task.npz --run run.npz
                                  what training selected, and how close W is to that SVM
  attsvm path task.npz -o path.npz
                                  the minimiser of the loss over growing balls
  attsvm report task.npz --run run.npz -o report.html
                                  show all of it on a page to open in a browser
  attsvm playground -o playground.html
                                  drag tokens on a page, and see SVM and training follow
  attsvm audit heads.npz --page audit.html
                                  what the attention heads of a model choose (attsvm.torch writes such files)
  attsvm capacity --n 64 --T 32 --d 48
                                  which sizes can separate, and the smallest d that suffices
  attsvm claims                   test statements about training and its SVMs
  attsvm reproduce list           the published experiments; attsvm reproduce NAME runs one and draws its figure
  attsvm info                     version, compiler, vector instructions, threads
Every verb has its own help: attsvm generate --help
Files are NumPy .npz; numpy.savez writes what attsvm reads.

Exit codes: 0 done, 1 internal error, 2 bad usage or input, 3 infeasible (with a certificate),
4 stopped at a limit or stalled, 5 not valid (verify), 130 interrupted)";

/// Joins lines: some of CLI11's messages have several.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// CLI11's help, with descriptions that wrap at words instead of running over the edge of a terminal.
class WrappingHelp : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    const std::string name = make_option_name(option, positional) + make_option_opts(option);
    return entry(name, make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    return entry(verb->get_name(), verb->get_description());
  }

  static std::string entry(const std::string& name, const std::string& words) {
    constexpr std::size_t kColumn = 30;
    std::string text = "  " + name;
    for (const std::string& paragraph : CLI::detail::split(words, '\n')) {
      for (const std::string& line : wrapped(paragraph, kTerminal - kColumn)) {
        if (text.size() - (text.rfind('\n') + 1) + 2 > kColumn) text += '\n';  // also where npos + 1 is 0
        text += std::string(kColumn - (text.size() - (text.rfind('\n') + 1)), ' ') + line;
      }
    }
    return text + '\n';
  }
};

/// What the program says when it is asked nothing.
void print_verbs(const CLI::App& program) {
  fmt::print("{}\n\n", program.get_description());
  for (const CLI::App* verb : program.get_subcommands(nullptr))
    fmt::print("  {:<12} {}\n", verb->get_name(), verb->get_description());
  fmt::print("\nattsvm VERB --help explains one, attsvm --help has examples, attsvm demo shows it all in seconds.\n");
}

/// The message for the first unknown option; empty if no option is unknown.
std::string unknown_option(const CLI::App& verb, int argc, const char* const* argv) {
  std::vector<std::string> known;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (int k = 1; k < argc; ++k) {
    const std::string word = std::string(argv[k]).substr(0, std::string_view(argv[k]).find('='));
    if (!word.starts_with("--") || std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string meant = nearest(word, known);
    return fmt::format("unknown option {}{}", word, meant.empty() ? "" : "; did you mean " + meant + "?");
  }
  return {};
}

/// Writes "attsvm: ", both texts and a line break to stderr; in one call and without asking for memory, so that it can
/// be called where memory is short and in a signal handler.
void write_line(const char* first, const char* second) noexcept {
  std::array<char, 4096> line{};
  std::size_t size = 0;
  for (const char* text : {"attsvm: ", first, second, "\n"}) {
    for (; *text != '\0' && size < line.size(); ++text) line[size++] = *text;
  }
  [[maybe_unused]] const auto put = ::write(STDERR_FILENO, line.data(), size);
}

/// While one is alive, an input file that becomes shorter than it was ends the program. What was computed from it up to
/// then is lost, and no output file appears under its name (one that is being written may leave NAME.PID.partial where
/// the file system has no unnamed files).
class CutFileWatch {
 public:
  CutFileWatch() : before_(on_cut_file(end_program)) {}
  ~CutFileWatch() { on_cut_file(before_); }
  CutFileWatch(const CutFileWatch&) = delete;
  CutFileWatch& operator=(const CutFileWatch&) = delete;

 private:
  static void end_program(const char* path) {
    write_line(path, ": became shorter while it was in use");
    ::_exit(kBadInput);
  }

  CutFileHook before_;
};

/// Whether the reader of our output has gone, as `attsvm ... | head` does: nothing to complain about.
bool nobody_reads(const std::system_error& error) { return error.code() == std::errc::broken_pipe; }

/// Verbs whose work all ranks share. The others run on rank 0, and the other ranks wait.
constexpr std::array<std::string_view, 7> kShared{"check", "claims", "reproduce", "solve", "sweep", "train", "verify"};

bool is_ours(const CLI::App& program) {
  if (ranks().first()) return true;
  const auto chosen = program.get_subcommands();
  return !chosen.empty() && std::find(kShared.begin(), kShared.end(), chosen.front()->get_name()) != kShared.end();
}

/// Ends the verb with a message. Rank 0 prints it, or the message of a rank that it waits for.
int complain(ExitCode code, const std::string& message) {
  if (ranks().first()) {
    fmt::print(stderr, "attsvm: {}\n", message);
  } else {
    ranks().fail(message);
  }
  return code;
}

int run_verb(int argc, const char* const* argv) {
  try {
    CLI::App program("attsvm: the support vector machines that softmax attention solves", "attsvm");
    Session session;
    program.set_version_flag("--version", "attsvm " ATTSVM_VERSION);
    program.require_subcommand(1);
    program.footer(kTeaching);
    program.formatter(std::make_shared<WrappingHelp>());
    add_audit(program, session);
    add_capacity(program, session);
    add_check(program, session);
    add_claims(program, session);
    add_completion(program, session);
    add_demo(program, session);
    add_generate(program, session);
    add_heads(program, session);
    add_info(program, session);
    add_path(program, session);
    add_playground(program, session);
    add_positions(program, session);
    add_report(program, session);
    add_reproduce(program, session);
    add_solve(program, session);
    add_split(program, session);
    add_stack(program, session);
    add_sweep(program, session);
    add_train(program, session);
    add_verify(program, session);
    accept_whole_numbers(program);
    if (argc < 2) {
      print_verbs(program);
      return kDone;
    }
    try {
      program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
      const auto chosen = program.get_subcommands();
      const std::string verb = chosen.empty() ? "" : chosen.front()->get_name() + " ";
      const bool unknown = chosen.empty() && argc > 1 && argv[1][0] != '-';
      std::vector<std::string> verbs;
      for (const CLI::App* known : program.get_subcommands(nullptr)) verbs.push_back(known->get_name());
      std::string what;
      if (unknown) {
        what = fmt::format("unknown verb {}; {}", argv[1], suggestion(argv[1], verbs));
      }
      const bool surplus = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
      if (surplus && !chosen.empty()) what = unknown_option(*chosen.front(), argc, argv);
      if (what.empty()) what = one_line(error.what());
      return complain(kBadInput, fmt::format("{} (see attsvm {}--help)", what, verb));
    }
    if (!is_ours(program)) return kDone;
    session.quiet = session.quiet || !ranks().first();
    const ExitCode code = session.verb();
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "stdout cannot be written");
    return code;
  } catch (const InputError& error) {
    return complain(kBadInput, one_line(error.what()));
  } catch (const std::bad_alloc&) {
    return ranks().first() ? say_out_of_memory() : complain(kBadInput, kOutOfMemory);
  } catch (const std::system_error& error) {
    if (nobody_reads(error)) throw;
    return complain(kBadInput, error.what());
  } catch (const std::exception& error) {
    return complain(kInternalError, fmt::format("internal error, please report it: {}", error.what()));
  }
}

int run_rank(int argc, const char* const* argv) {
  try {
    return run_verb(argc, argv);
  } catch (const std::system_error& error) {  // also from messages about other errors
    if (nobody_reads(error)) return kNobodyReads;
    throw;
  } catch (const JobOver&) {
    return kDone;  // rank 0 has the exit code
  }
}

/// What all ranks must have been given alike: with another command, what a rank does would be lost or be wrong.
std::string command_mark(int argc, const char* const* argv) {
  std::string mark;
  for (int k = 1; k < argc; ++k) mark.append(argv[k]).push_back('\0');
  return mark;
}

}  // namespace

int say_out_of_memory() noexcept {
  static std::atomic_flag said;
  if (!said.test_and_set()) write_line(kOutOfMemory, "");
  return kBadInput;
}

int run_program(int argc, const char* const* argv) {
  const CutFileWatch watch;
  throw_where_libraries_lack_memory();
  // A signal to all ranks must not end the others while rank 0 writes what it has; from the first moment on, because
  // rank 0 may be at work before a slow rank has read its command.
  if (launched().rank != 0) Session::watch_interrupts();
  try {
    join_ranks(command_mark(argc, argv));
  } catch (const InputError& error) {  // of all ranks; one message is enough
    if (launched().rank == 0) fmt::print(stderr, "attsvm: {}\n", one_line(error.what()));
    return kBadInput;
  }
  if (!ranks().first() && std::freopen("/dev/null", "w", stdout) == nullptr) return kInternalError;
  const int code = run_rank(argc, argv);
  std::fflush(stdout);  // the launcher may end all ranks as soon as one of them has ended with an error
  return leave_ranks(code);
}

}  // namespace attsvm::internal
