#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "io/capacity_data.h"
#include "io/output.h"
#include "options.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kLabel = 12;

/// "0.955 (0.917 to 0.976), 191 of 200"
std::string share_words(const Share& share) {
  if (share.of == 0) return "not counted";
  return fmt::format("{:.3g} ({:.3f} to {:.3f}), {} of {}", share.value(), share.low, share.high, share.count,
                     share.of);
}

/// "14.3 ± 0.8, 12 to 17"
std::string spread_words(const Spread& spread) {
  if (spread.count == 0) return "no draw to measure";
  if (spread.count == 1) return fmt::format("{:.4g} (one draw)", spread.mean);
  return fmt::format("{:.4g} ± {:.2g}, {:.4g} to {:.4g}", spread.mean, spread.deviation, spread.least, spread.most);
}

void print_search(const CapacitySettings& settings, const CapacitySearch& search) {
  const std::string where = search.low >= search.high ? fmt::format("d = {}", search.high)
                                                      : fmt::format("d = {} to {}", search.low, search.high);
  const std::string tied = settings.pattern == QueryPattern::cross && settings.dz == 0 ? " (dz = d)" : "";
  print_field("smallest d", kLabel,
              fmt::format("{}{} for a chance of {:.3g}{}{}", where, tied, search.wanted,
                          search.predicted > 0 ? fmt::format("; predicted {}", search.predicted) : "",
                          search.complete ? "" : "; not narrowed down further"));
  for (const CapacityPoint& point : search.points)
    print_field("", kLabel, fmt::format("d = {}: {}", point.d, share_words(point.separable)));
}

void print_capacity(const CapacitySettings& settings, const Capacity& c) {
  fmt::print("{} attention, n = {}, T = {}, d = {}, dz = {}: {} rows, {} unknowns\n", name_of(settings.pattern),
             settings.n, settings.T, settings.d, c.unknowns / settings.d, c.rows, c.unknowns);
  print_field("theory", kLabel,
              c.always ? fmt::format("every selection is separable, with probability 1: {}", c.why)
                       : fmt::format("not every selection need be separable: {}", c.why));
  print_field(
      "predicted", kLabel,
      std::isnan(c.dimension)
          ? "not known: stopped before"
          : fmt::format("{:.3g}: load {:.3g} = n * {:.3g}/(d*dz), half are separable at 1; Cover's count says {:.3g}",
                        c.predicted, c.load, c.dimension, c.cover));
  print_field(
      "separable", kLabel,
      fmt::format("{}{}", share_words(c.separable), c.undecided > 0 ? fmt::format("; {} undecided", c.undecided) : ""));
  if (settings.heads > 1) print_field(fmt::format("{} heads", settings.heads), kLabel, share_words(c.all_heads));
  if (c.margin.count > 0) {
    print_field("margin", kLabel, spread_words(c.margin));
    print_field("rank", kLabel,
                fmt::format("{} of the nuclear solution: no larger rank is needed", spread_words(c.rank)));
    print_field("", kLabel, fmt::format("{} at least for the largest margin", spread_words(c.rank_floor)));
  }
  if (settings.width > 0) {
    print_field(fmt::format("width {}", settings.width), kLabel,
                fmt::format("{} proven to suffice, at most {:.3f} of selections do", share_words(c.fits_width),
                            c.separable.high));
    if (c.width_margin.count > 0)
      print_field("", kLabel,
                  fmt::format("keeps at most {:.3g} of the largest margin, on average", c.width_margin.mean));
  }
  if (c.support.count > 0)
    print_field("support", kLabel, fmt::format("{} of the rows are met with equality", spread_words(c.support)));
  if (c.global.of > 0)
    print_field("training", kLabel, fmt::format("{} runs end at the best tokens", share_words(c.global)));
  if (c.smallest_d) print_search(settings, *c.smallest_d);
}

/// The command that makes the page again.
std::string command_line(const CapacitySettings& settings, const std::string& page) {
  const CapacitySettings usual;
  std::vector<std::string> words{"attsvm", "capacity"};
  const auto add = [&](const char* name, const auto& value, bool given) {
    if (given) words.insert(words.end(), {name, fmt::format("{}", value)});
  };
  add("--n", settings.n, true);
  add("--T", settings.T, true);
  add("--d", settings.d, true);
  add("--dz", settings.dz, settings.dz != usual.dz);
  add("--attention", name_of(settings.pattern), settings.pattern != usual.pattern);
  add("--width", settings.width, settings.width != usual.width);
  add("--heads", settings.heads, settings.heads != usual.heads);
  add("--draws", settings.draws, settings.draws != usual.draws);
  add("--runs", settings.runs, settings.runs != usual.runs);
  add("--want", settings.wanted, settings.wanted != usual.wanted);
  add("--seed", settings.seed, settings.seed != usual.seed);
  add("--page", page, true);
  return shell_line(words);
}

ExitCode run_capacity(Session& session, CapacitySettings settings, const std::string& page) {
  if (!page.empty()) {
    if (const std::string problem = page_problem(); !problem.empty()) throw InputError(problem);
    require_writable(page, session.force);
  }
  Threads threads(session.threads);
  session.set_device(threads);
  ProgressLine line(session);
  settings.progress = [&](const std::string& work, double share) {
    line.show(share, [&] { return work; });
    return Session::interrupted();
  };
  settings.chances = !page.empty();
  Session::watch_interrupts();
  const Stopwatch watch;
  const Capacity found = capacity(settings, threads);
  const double seconds = watch.seconds();
  line.clear();
  if (!page.empty()) write_report(page, capacity_page(settings, found, command_line(settings, page)), session.force);
  if (session.json) {
    Json fields = capacity_json(settings, found);
    fields["time_limit"] = settings.time_limit;
    fields["page"] = page.empty() ? Json(nullptr) : Json(page);
    fields["threads"] = threads.count();
    Session::print_json("capacity", seconds, fields);
  } else {
    print_capacity(settings, found);
    if (!page.empty()) print_field("page", kLabel, page);
  }
  if (found.complete) return kDone;
  session.warn("stopped; these are the counts so far");
  return Session::interrupted() ? kInterrupted : kLimit;
}

}  // namespace

void add_capacity(CLI::App& program, Session& session) {
  auto settings = std::make_shared<CapacitySettings>();
  auto page = std::make_shared<std::string>();
  CLI::App* verb = session.add_verb(
      program, "capacity", "What sizes can separate: chances, margins, ranks, and the smallest d that suffices",
      R"(Examples:
  attsvm capacity --n 64 --T 32 --d 48            can a random choice among 32 tokens be met for 64 queries?
  attsvm capacity --n 64 --T 32 --d 48 --width 8 --heads 4
                                                  by heads of width 8, four of them, each with a choice of its own
  attsvm capacity --n 500 --T 16 --d 32 --want .99 --draws 1000
                                                  the smallest d for 99 %, with narrower intervals
  attsvm capacity --attention prompt --n 10 --T 5 --d 16
  attsvm capacity --n 64 --T 32 --d 48 --page sizes.html
                                                  as a page, with the chance against d
Tasks are drawn with unit Gaussian tokens and queries, and one random token per query is to be selected. Every draw is
decided by a certified solve: a W that separates, or a proof that there is none. Intervals are Wilson's, at 95 %.
docs/howto/sizes.md explains every line.
Exit codes: 0 done, 4 stopped by --time-limit, 130 interrupted; the counts so far are printed, and on the page)",
      [&session, settings, page] { return run_capacity(session, *settings, *page); });
  verb->add_option("--n", settings->n, "Queries, one per sequence")->required();
  verb->add_option("--T", settings->T, "Tokens per sequence")->required();
  verb->add_option("--d", settings->d, "Size of tokens")->required();
  verb->add_option("--dz", settings->dz, "Size of queries (default: d)")->check(CLI::PositiveNumber);
  verb->add_option("--attention", settings->pattern, "Where queries come from (default: cross)")
      ->transform(one_of<QueryPattern>(
          {{"cross", QueryPattern::cross}, {"self", QueryPattern::self}, {"prompt", QueryPattern::prompt}}));
  verb->add_option("--width", settings->width, "Width r of a head: is there a W = K Q' with r columns?")
      ->check(CLI::PositiveNumber);
  verb->add_option("--heads", settings->heads, "Heads, each with a random selection of its own (default: 1)");
  verb->add_option("--draws", settings->draws, "Random tasks to solve (default: 100)");
  verb->add_option("--runs", settings->runs, "Of these, tasks to train (default: as many as take a few seconds)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--want", settings->wanted, "Chance for which to look for the smallest d; 0: do not (default: 0.9)");
  verb->add_option("--seed", settings->seed, "Seed of the draws (default: 0)");
  add_device(verb, session.device);
  CLI::Option* shown = verb->add_option("--page", *page, "Also write a page that shows it: one HTML file")
                           ->check([](const std::string& name) { return name.empty() ? "'' is not a file name" : ""; });
  verb->add_flag("--force", session.force, "Replace the page if it exists")->needs(shown);
  verb->add_option("--time-limit", settings->time_limit, "Seconds after which to stop with the counts so far")
      ->check(positive_number());
}

}  // namespace attsvm::internal
