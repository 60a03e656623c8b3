#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <numeric>
#include <utility>

#include "options.h"

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

/// Edit distance: how many letters to insert, delete or replace to make two words equal.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t swapped = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, swapped}));
    }
  }
  return row[b.size()];
}

/// The known word nearest to one that is not known; empty if none is within half of its letters.
std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = word.substr(std::min(word.size(), word.find_first_not_of('-'))).size() / 2;
  for (const std::string& one : known) {
    if (const std::size_t far = distance(word, one); far <= least) {
      least = far - 1;
      best = one;
    }
  }
  return best;
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

}  // namespace

int run_program(int argc, const char* const* argv) {
  try {
    CLI::App program("attsvm: the support vector machines that softmax attention solves", "attsvm");
    Session session;
    program.set_version_flag("--version", "attsvm " ATTSVM_VERSION);
    program.require_subcommand(1);
    program.footer(kTeaching);
    add_check(program, session);
    add_claims(program, session);
    add_demo(program, session);
    add_generate(program, session);
    add_info(program, session);
    add_path(program, session);
    add_report(program, session);
    add_reproduce(program, session);
    add_solve(program, session);
    add_sweep(program, session);
    add_train(program, session);
    add_verify(program, session);
    accept_whole_numbers(program);
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
        const std::string meant = nearest(argv[1], verbs);
        what = fmt::format("unknown verb {}; {}", argv[1],
                           meant.empty() ? fmt::format("must be one of {}", fmt::join(verbs, ", "))
                                         : fmt::format("did you mean {}?", meant));
      }
      const bool surplus = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
      if (surplus && !chosen.empty()) what = unknown_option(*chosen.front(), argc, argv);
      if (what.empty()) what = one_line(error.what());
      fmt::print(stderr, "attsvm: {} (see attsvm {}--help)\n", what, verb);
      return kBadInput;
    }
    const ExitCode code = session.verb();
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout cannot be written");
    return code;
  } catch (const InputError& error) {
    fmt::print(stderr, "attsvm: {}\n", one_line(error.what()));
    return kBadInput;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "attsvm: out of memory\n");
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "attsvm: internal error, please report it: {}\n", error.what());
    return kInternalError;
  }
}

}  // namespace attsvm::internal
