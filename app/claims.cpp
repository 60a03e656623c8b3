#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "io/file.h"
#include "io/npz_writer.h"
#include "io/output.h"
#include "options.h"
#include "ranks/portions.h"
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
  Index tasks = 0, held = 0;
  double worst = 0;
  bool complete = true;
  double seconds = 0;
  std::vector<ClaimFigure> figures;
  std::string words, file;  // of the counter-example, and where it was written; empty if there is none
};

/// Any number as text, infinity and NaN included, which JSON does not have.
std::string number_text(double number) { return fmt::format("{}", number); }
double text_number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

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

/// The bytes of a task file.
std::string task_bytes(const AttentionTask& task, const std::map<std::string, Array>& extras) {
  NamedArrays arrays = task_arrays(task);
  arrays.insert(arrays.end(), extras.begin(), extras.end());
  return npz_bytes(arrays);
}

/// Tests one claim, on any rank. The text begins with the length of the words in it; a counter-example's file follows
/// them.
std::string test(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  const Stopwatch watch;
  const ClaimResult result = test_claim(claim, settings, threads);
  Json figures = Json::array();
  for (const ClaimFigure& figure : result.figures) figures.push_back({figure.label, number_text(figure.value)});
  const auto& example = result.counterexample;
  const std::string words = Json{{"tasks", result.tasks},
                                 {"held", result.held},
                                 {"worst", number_text(result.worst)},
                                 {"complete", result.complete},
                                 {"seconds", watch.seconds()},
                                 {"figures", std::move(figures)},
                                 {"words", example ? Json(example->words) : Json(nullptr)}}
                                .dump();
  return fmt::format("{} {}{}", words.size(), words, example ? task_bytes(example->task, example->extras) : "");
}

/// What test() found, whose counter-example is written here.
Tested tested(const Claim& claim, const ClaimsOptions& options, const std::string& text) {
  std::size_t begin = 0;
  const std::size_t length = std::stoul(text, &begin);
  const std::string_view rest = std::string_view(text).substr(begin + 1);
  const Json words = Json::parse(rest.substr(0, length));
  Tested one{.claim = &claim,
             .tasks = words.at("tasks"),
             .held = words.at("held"),
             .worst = text_number(words.at("worst")),
             .complete = words.at("complete"),
             .seconds = words.at("seconds")};
  for (const Json& figure : words.at("figures")) one.figures.push_back({figure[0], text_number(figure[1])});
  if (!words.at("words").is_null()) {
    one.words = words.at("words");
    make_folder(options.out);
    one.file = (std::filesystem::path(options.out) / fmt::format("{}.npz", claim.name)).string();
    OutputFile file(one.file, true);
    file.write(std::as_bytes(std::span(rest.substr(length))));
    file.commit();
  }
  return one;
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
    for (const ClaimFigure& figure : one.figures) figures[figure.label] = figure.value;
    Json entry = to_json(*one.claim);
    entry["tasks"] = one.tasks;
    entry["held"] = one.held;
    entry["worst"] = one.worst;
    entry["seconds"] = one.seconds;
    entry["counterexample"] = one.file.empty() ? Json(nullptr) : Json(one.file);
    entry["words"] = one.file.empty() ? Json(nullptr) : Json(one.words);
    entry["figures"] = std::move(figures);
    entry["stopped"] = !one.complete;
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
  fmt::print("{:<22} held on {:>4} of {:<4}  worst {:<10} {:>6.1f} s{}\n", one.claim->name, one.held, one.tasks,
             std::isfinite(one.worst) ? fmt::format("{:.3g}", one.worst) : "-", one.seconds,
             one.complete ? "" : "  (stopped early)");
  print_text(one.claim->statement);
  print_text(fmt::format("worst: {}", one.claim->measure));
  for (const ClaimFigure& figure : one.figures) fmt::print("    {:>10.4g}  {}\n", figure.value, figure.label);
  if (!one.file.empty()) print_text(fmt::format("{}: {}", one.file, one.words));
  std::fflush(stdout);
}

/// "2 claims held on 199 of 200 tasks": a claim that failed on one task of a hundred did not fail altogether.
void print_total(const std::vector<Tested>& all, const std::string& stopped, double seconds) {
  Index held = 0, tasks = 0;
  std::vector<std::string> exceptions;
  for (const Tested& one : all) {
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

ExitCode run_claims(Session& session, ClaimsOptions& options) {
  Threads threads(session.threads);
  session.set_device(threads);
  if (options.names == std::vector<std::string>{"list"}) return list_claims(session, threads.count());
  const auto list = chosen(options.names);
  const Stopwatch watch;
  const auto time_left = [&] {  // the limit holds for all claims together; 0: none
    const double limit = options.settings.time_limit;
    return limit > 0 ? std::max(limit - watch.seconds(), 1e-3) : 0;
  };
  Session::watch_interrupts();
  std::function<void(const ClaimProgress&)> show;  // only where a claim runs on this thread
  const auto work = [&](const std::string& portion) {
    ClaimSettings settings = options.settings;
    settings.time_limit = time_left();
    settings.progress = [&](const ClaimProgress& progress) {
      if (show) show(progress);
      return Session::interrupted();
    };
    return test(*list[std::stoul(portion)], settings, threads);
  };
  if (!ranks().first()) {
    ranks().help(work);
    return kDone;
  }
  if (std::filesystem::exists(options.out)) make_folder(options.out);  // fails before the work if it is a file
  ProgressLine line(session);
  std::map<std::size_t, std::string> found;  // by claim: those that are done
  std::vector<Tested> all;                   // up to the first that is not
  std::size_t next = 0;
  const auto now_at = [&](double share, const std::string& rest) {
    const std::size_t done = all.size() + found.size();
    line.show((static_cast<double>(done) + share) / static_cast<double>(list.size()),
              [&] { return fmt::format("{} of {} claims done{}", done, list.size(), rest); });
  };
  if (ranks().count() == 1) {
    show = [&](const ClaimProgress& progress) {
      now_at(static_cast<double>(progress.done) / static_cast<double>(progress.tasks),
             fmt::format("; {}: {} of {} tasks", list[next - 1]->name, progress.done, progress.tasks));
    };
  }
  const auto take = [&](const std::string& portion, const std::string& result) {
    line.clear();
    found.emplace(std::stoul(portion), result);
    for (auto first = found.begin(); first != found.end() && first->first == all.size(); first = found.begin()) {
      Tested one = tested(*list[all.size()], options, first->second);
      found.erase(first);
      if (!one.complete && one.tasks == 0) {
        next = list.size();
        return;
      }
      if (!session.json) print(one);
      all.push_back(std::move(one));
    }
  };
  const auto out_of_time = [&] {
    return options.settings.time_limit > 0 && watch.seconds() >= options.settings.time_limit;
  };
  Portions portions(ranks(), work);
  portions.run({.next = [&]() -> std::optional<std::string> {
                  if (next == list.size()) return std::nullopt;
                  return std::to_string(next++);
                },
                .done = take,
                .over =
                    [&] {
                      if (ranks().count() > 1) now_at(0, "");
                      return Session::interrupted() || out_of_time();
                    }});
  if (!Session::interrupted()) portions.finish(take);
  line.clear();
  const double seconds = watch.seconds();
  const bool complete =
      all.size() == list.size() && std::all_of(all.begin(), all.end(), [](const Tested& one) { return one.complete; });
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
