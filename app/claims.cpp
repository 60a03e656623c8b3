#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/refuse.h"
#include "io/file.h"
#include "io/output.h"
#include "options.h"
#include "session.h"
#include "study/claim_runner.h"

namespace attsvm::internal {
namespace {

struct ClaimsWords {
  std::vector<std::string> names;
  std::string out = "claims";
  ClaimsOptions testing;
};

/// Where the counter-example of a claim is written.
std::string file_of(const TestedClaim& one, const ClaimsWords& options) {
  return one.example.empty() ? ""
                             : (std::filesystem::path(options.out) / fmt::format("{}.npz", one.claim->name)).string();
}

std::vector<const Claim*> chosen(const std::vector<std::string>& names) {
  std::vector<const Claim*> list;
  for (const std::string& name : names) {
    for (const Claim* claim : find_claims(name)) {
      if (std::find(list.begin(), list.end(), claim) == list.end()) list.push_back(claim);
    }
  }
  if (!names.empty()) return list;
  for (const Claim& claim : claims()) list.push_back(&claim);
  return list;
}

void write_example(const TestedClaim& one, const ClaimsWords& options) {
  if (one.example.empty()) return;
  OutputFile file(file_of(one, options), true);
  file.write(one.example);
  file.commit();
}

Json to_json(const Claim& claim) {
  return {{"name", claim.name},
          {"statement", claim.statement},
          {"source", claim.source},
          {"tested", claim.tested},
          {"measure", claim.measure}};
}

Json to_json(const std::vector<TestedClaim>& all, const ClaimsWords& options, int threads) {
  Json list = Json::array();
  for (const TestedClaim& one : all) {
    Json figures = Json::object();
    for (const ClaimFigure& figure : one.figures) figures[figure.label] = figure.value;
    Json entry = to_json(*one.claim);
    entry["tasks"] = one.tasks;
    entry["held"] = one.held;
    entry["worst"] = one.worst;
    entry["seconds"] = one.seconds;
    entry["counterexample"] = one.example.empty() ? Json(nullptr) : Json(file_of(one, options));
    entry["words"] = one.example.empty() ? Json(nullptr) : Json(one.words);
    entry["figures"] = std::move(figures);
    entry["stopped"] = !one.complete;
    list.push_back(std::move(entry));
  }
  const ClaimsOptions& testing = options.testing;
  return {{"claims", list},           {"tasks", testing.tasks > 0 ? Json(testing.tasks) : Json(nullptr)},
          {"seed", testing.seed},     {"out", options.out},
          {"resume", testing.resume}, {"time_limit", testing.time_limit},
          {"threads", threads},       {"store", testing.store}};
}

void print_text(std::string_view text) {
  for (const std::string& line : wrapped(text)) fmt::print("    {}\n", line);
}

void print(const TestedClaim& one, const ClaimsWords& options) {
  fmt::print("{:<22} held on {:>4} of {:<4}  worst {:<10} {:>6.1f} s{}\n", one.claim->name, one.held, one.tasks,
             std::isfinite(one.worst) ? fmt::format("{:.3g}", one.worst) : "-", one.seconds,
             one.complete ? "" : "  (stopped early)");
  print_text(one.claim->statement);
  print_text(fmt::format("worst: {}", one.claim->measure));
  for (const ClaimFigure& figure : one.figures) fmt::print("    {:>10.4g}  {}\n", figure.value, figure.label);
  if (!one.example.empty()) print_text(printable(fmt::format("{}: {}", file_of(one, options), one.words)));
  std::fflush(stdout);
}

/// "2 claims held on 199 of 200 tasks": a claim that failed on one task of a hundred did not fail altogether.
void print_total(const std::vector<TestedClaim>& all, const std::string& stopped, double seconds) {
  Index held = 0, tasks = 0;
  std::vector<std::string> exceptions;
  for (const TestedClaim& one : all) {
    held += one.held;
    tasks += one.tasks;
    if (one.held < one.tasks) exceptions.push_back(fmt::format("{} ({} of {})", one.claim->name, one.held, one.tasks));
  }
  const std::string total =
      fmt::format("{} held on {} of {}{}, {:.1f} s", counted(static_cast<Index>(all.size()), "claim"), held,
                  counted(tasks, "task"), stopped, seconds);
  fmt::print("{}\n", total);
  if (exceptions.empty()) return;
  for (const std::string& line : wrapped(fmt::format("not on every task: {}", fmt::join(exceptions, ", "))))
    fmt::print("{}\n", line);
}

ExitCode list_claims(const Session& session, int threads) {
  if (session.json) {
    Json list = Json::array();
    for (const Claim& claim : claims()) {
      list.push_back(to_json(claim));
      list.back()["tasks"] = claim.tasks;
    }
    Session::print_json("claims", 0, {{"claims", list}, {"seed", nullptr}, {"threads", threads}});
    return kDone;
  }
  for (const Claim& claim : claims()) {
    fmt::print("{} ({} tasks)\n", claim.name, claim.tasks);
    print_text(claim.statement);
    print_text(claim.source);
    print_text(fmt::format("tested on {}", claim.tested));
  }
  return kDone;
}

ExitCode run_claims(Session& session, ClaimsWords& options) {
  Threads threads(session.threads);
  session.set_device(threads);
  if (options.names == std::vector<std::string>{"list"}) return list_claims(session, threads.count());
  const auto list = chosen(options.names);
  ClaimsOptions& testing = options.testing;
  testing.store = (std::filesystem::path(options.out) / "runs.sqlite3").string();
  if (ranks().first()) make_folder(options.out);
  ProgressLine line(session);
  std::size_t shown = 0;
  const auto show = [&](const TestedClaim& one) {
    line.clear();
    write_example(one, options);
    if (!session.json) print(one, options);
    ++shown;
  };
  testing.stopped = [] { return Session::interrupted(); };
  testing.tested = show;
  testing.progress = [&](const ClaimsProgress& now) {
    const double share = now.now == nullptr ? 0 : static_cast<double>(now.tasks_done) / static_cast<double>(now.tasks);
    line.show((static_cast<double>(now.done) + share) / static_cast<double>(now.claims), [&] {
      return fmt::format(
          "{} of {} claims done{}", now.done, now.claims,
          now.now == nullptr ? "" : fmt::format("; {}: {} of {} tasks", now.now->name, now.tasks_done, now.tasks));
    });
  };
  Session::watch_interrupts();
  const Stopwatch watch;
  const std::vector<TestedClaim> all = test_claims(list, testing, threads);
  if (!ranks().first()) return kDone;
  while (shown < all.size()) show(all[shown]);
  line.clear();
  const double seconds = watch.seconds();
  const bool complete = all.size() == list.size() &&
                        std::all_of(all.begin(), all.end(), [](const TestedClaim& one) { return one.complete; });
  if (!complete) session.warn("the same command continues from here");
  if (session.json) {
    Session::print_json("claims", seconds, to_json(all, options, threads.count()));
  } else {
    print_total(all, complete ? "" : fmt::format(" (stopped; {} asked for)", list.size()), seconds);
  }
  if (complete) return kDone;
  return Session::interrupted() ? kInterrupted : kLimit;
}

}  // namespace

void add_claims(CLI::App& program, Session& session) {
  auto options = std::make_shared<ClaimsWords>();
  CLI::App* verb = session.add_verb(program, "claims", "Test statements about training and its SVMs",
                                    R"(Examples:
  attsvm claims list                      the claims, their sources, and the tasks they are tested on
  attsvm claims                           test all of them, in about a minute
  attsvm claims direction path --tasks 100
                                          some of them on more tasks; path means path-W, path-KQ and path-p
  attsvm check claims/direction.npz       examine the worst task on which a claim failed
The statements are in our words; the source of each says what the papers' abstracts contain of it.
A claim that fails somewhere is a finding, not an error: the exit code is 0, and the worst such task is written to
DIR/NAME.npz with the failing run or W in arrays named x_*.
Tasks that are done are kept in DIR/runs.sqlite3: the same command continues after it was stopped or killed.
Exit codes: 0 done, 4 stopped at the time limit, 130 interrupted)",
                                    [&session, options] { return run_claims(session, *options); });
  verb->add_option("NAME", options->names, "Claims to test, or list (default: all)");
  verb->add_option("--tasks", options->testing.tasks, "Random tasks per claim (default: each claim's own number)")
      ->check(CLI::Range(Index{1}, Index{1} << 24));
  verb->add_option("--seed", options->testing.seed, "Seed of the tasks (default: 0)");
  add_device(verb, session.device);
  verb->add_option("--out", options->out, "Folder for counter-examples and finished tasks (default: claims)")
      ->check(output_name());
  verb->add_flag("--resume,!--no-resume", options->testing.resume,
                 "Go on from the tasks stored in the folder (default), or delete them first");
  verb->add_option("--time-limit", options->testing.time_limit,
                   "Seconds after which to stop; tasks that are done are kept and shown")
      ->check(positive_number());
}

}  // namespace attsvm::internal
