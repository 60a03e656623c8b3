#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "io/output.h"
#include "options.h"
#include "session.h"

namespace attsvm::internal {
namespace {

struct ClaimsOptions {
  std::vector<std::string> names;
  std::string out = "claims";
  ClaimSettings settings;
};

struct Tested {
  const Claim* claim;
  ClaimResult result;
  double seconds = 0;
  std::string file;  // where the counter-example was written; empty if there is none
};

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

/// Tests one claim and writes its counter-example, if there is one.
Tested test(const Claim& claim, const ClaimsOptions& options, const ClaimSettings& settings, Threads& threads) {
  const Stopwatch watch;
  Tested tested{.claim = &claim, .result = test_claim(claim, settings, threads)};
  tested.seconds = watch.seconds();
  if (const auto& example = tested.result.counterexample) {
    make_folder(options.out);
    tested.file = (std::filesystem::path(options.out) / fmt::format("{}.npz", claim.name)).string();
    save_task(tested.file, example->task, example->extras, true);
  }
  return tested;
}

Json to_json(const Claim& claim) {
  return {{"name", claim.name},
          {"statement", claim.statement},
          {"source", claim.source},
          {"tested", claim.tested},
          {"measure", claim.measure}};
}

Json to_json(const std::vector<Tested>& all, const ClaimsOptions& options, int threads) {
  Json list = Json::array();
  for (const Tested& one : all) {
    Json figures = Json::object();
    for (const ClaimFigure& figure : one.result.figures) figures[figure.label] = figure.value;
    Json entry = to_json(*one.claim);
    entry["tasks"] = one.result.tasks;
    entry["held"] = one.result.held;
    entry["worst"] = one.result.worst;
    entry["seconds"] = one.seconds;
    entry["counterexample"] = one.file.empty() ? Json(nullptr) : Json(one.file);
    entry["words"] = one.file.empty() ? Json(nullptr) : Json(one.result.counterexample->words);
    entry["figures"] = std::move(figures);
    entry["stopped"] = !one.result.complete;
    list.push_back(std::move(entry));
  }
  return {{"claims", list},
          {"tasks", options.settings.tasks > 0 ? Json(options.settings.tasks) : Json(nullptr)},
          {"seed", options.settings.seed},
          {"out", options.out},
          {"time_limit", options.settings.time_limit},
          {"threads", threads}};
}

void print_text(std::string_view text) {
  for (const std::string& line : wrapped(text)) fmt::print("    {}\n", line);
}

void print(const Tested& one) {
  const ClaimResult& result = one.result;
  fmt::print("{:<22} held on {:>4} of {:<4}  worst {:<10} {:>6.1f} s{}\n", one.claim->name, result.held, result.tasks,
             std::isfinite(result.worst) ? fmt::format("{:.3g}", result.worst) : "-", one.seconds,
             result.complete ? "" : "  (stopped early)");
  print_text(one.claim->statement);
  print_text(fmt::format("worst: {}", one.claim->measure));
  for (const ClaimFigure& figure : result.figures) fmt::print("    {:>10.4g}  {}\n", figure.value, figure.label);
  if (!one.file.empty()) print_text(fmt::format("{}: {}", one.file, result.counterexample->words));
  std::fflush(stdout);
}

/// "2 claims held on 199 of 200 tasks": a claim that failed on one task of a hundred did not fail altogether.
void print_total(const std::vector<Tested>& all, const std::string& stopped, double seconds) {
  Index held = 0, tasks = 0;
  std::vector<std::string> exceptions;
  for (const Tested& one : all) {
    held += one.result.held;
    tasks += one.result.tasks;
    if (one.result.held < one.result.tasks)
      exceptions.push_back(fmt::format("{} ({} of {})", one.claim->name, one.result.held, one.result.tasks));
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

ExitCode run_claims(Session& session, ClaimsOptions& options) {
  Threads threads(session.threads);
  session.set_device(threads);
  if (options.names == std::vector<std::string>{"list"}) return list_claims(session, threads.count());
  const auto list = chosen(options.names);
  if (std::filesystem::exists(options.out)) make_folder(options.out);  // fails before the work if it is a file
  ProgressLine line(session);
  const Stopwatch watch;
  ClaimSettings settings = options.settings;
  const auto has_time = [&] {  // the limit holds for all claims together
    if (options.settings.time_limit > 0) settings.time_limit = options.settings.time_limit - watch.seconds();
    return (settings.time_limit > 0 || options.settings.time_limit == 0) && !Session::interrupted();
  };
  std::vector<Tested> all;
  const Claim* now = nullptr;
  settings.progress = [&](const ClaimProgress& progress) {
    const double part = static_cast<double>(progress.done) / static_cast<double>(progress.tasks);
    line.show((static_cast<double>(all.size()) + part) / static_cast<double>(list.size()), [&] {
      return fmt::format("{} ({} of {}): {} of {} tasks done", now->name, all.size() + 1, list.size(), progress.done,
                         progress.tasks);
    });
    return Session::interrupted();
  };
  Session::watch_interrupts();
  for (const Claim* claim : list) {
    if (!has_time()) break;
    now = claim;
    Tested tested = test(*claim, options, settings, threads);
    line.clear();
    if (!tested.result.complete && tested.result.tasks == 0) break;
    if (!session.json) print(tested);
    all.push_back(std::move(tested));
  }
  const double seconds = watch.seconds();
  const bool complete = all.size() == list.size() && all.back().result.complete;
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
  auto options = std::make_shared<ClaimsOptions>();
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
Exit codes: 0 done, 4 stopped by --time-limit, 130 interrupted; finished claims are printed)",
                                    [&session, options] { return run_claims(session, *options); });
  verb->add_option("NAME", options->names, "Claims to test, or list (default: all)");
  verb->add_option("--tasks", options->settings.tasks, "Random tasks per claim (default: each claim's own number)")
      ->check(CLI::Range(Index{1}, Index{1} << 24));
  verb->add_option("--seed", options->settings.seed, "Seed of the tasks (default: 0)");
  add_device(verb, session.device);
  verb->add_option("--out", options->out, "Folder for counter-examples (default: claims)")->check(output_name());
  verb->add_option("--time-limit", options->settings.time_limit,
                   "Seconds after which to stop with the claims tested so far")
      ->check(positive_number());
}

}  // namespace attsvm::internal
