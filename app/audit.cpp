#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "audit/audit_data.h"
#include "base/refuse.h"
#include "io/output.h"
#include "options.h"

namespace attsvm::internal {
namespace {

struct AuditOptions {
  std::string heads, out, page, only;
  AuditSettings settings;
};

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.0f} %", 100 * share); }

/// "-" for a number that does not exist.
std::string digits(double number, const char* format = "{:.2g}") {
  return std::isfinite(number) ? fmt::format(fmt::runtime(format), number) : "-";
}

/// The rank of the nuclear answer: at most this, unless it is proven.
std::string nuclear_rank(const ViewAudit& view) {
  if (view.nuclear.status == "not run") return "-";
  return fmt::format("{}{}", view.nuclear.rank_certified ? "" : "<= ", view.nuclear.rank);
}

/// What is proven about the rank of the Frobenius answer.
std::string frobenius_rank(const ViewAudit& view) {
  if (view.rank_bound == 0) return "-";
  return fmt::format(">= {:.0f}", std::ceil(view.rank_bound * (1 - 1e-9)));
}

bool is_unsolved(const MarginFacts& facts) { return facts.status == "stalled" || facts.status == "limit"; }

/// What a line of the table should warn of; empty if nothing.
std::string warning(const HeadAudit& head, const ViewAudit& view) {
  std::string words;
  if (is_unsolved(view.frobenius)) words += fmt::format(" fro {}", view.frobenius.status);
  if (is_unsolved(view.nuclear)) words += fmt::format(" nuc {}", view.nuclear.status);
  return head.complete ? words : words + " stopped early";
}

/// Whether a margin problem was not solved to its tolerance.
bool any_unsolved(const Audit& audit) {
  for (const HeadAudit& head : audit.heads) {
    for (const ViewAudit& view : head.views) {
      if (is_unsolved(view.frobenius) || is_unsolved(view.nuclear)) return true;
    }
  }
  return false;
}

void print_grid(const Audit& audit) {
  fmt::print("  {:<6} {:<6} {:<20} {:>6} {:>5} {:>16} {:>3} {:>3} {:>7} {:>5} {:>5} {:>6}\n", "head", "view", "choice",
             "winner", "sinks", "gap 10/50/90 %", "r90", "r95", "nuclear", "fro", "null", "z");
  for (const HeadAudit& head : audit.heads) {
    for (const ViewAudit& view : head.views) {
      const auto& gap = view.gap;
      const std::string kind =
          view.kinds.empty() ? "-" : fmt::format("{} {}", percent(view.kinds.front().share), view.kinds.front().words);
      fmt::print("  {:<6} {:<6} {:<20} {:>6} {:>5} {:>16} {:>3} {:>3} {:>7} {:>5} {:>5} {:>6}{}\n",
                 view.hidden ? "" : fmt::format("{}.{}", head.layer, head.head), view.hidden ? "hidden" : "own", kind,
                 percent(view.weight.middle), view.hidden ? "" : percent(head.sink_weight),
                 fmt::format("{}/{}/{}", digits(gap.low), digits(gap.middle), digits(gap.high)), view.r90, view.r95,
                 nuclear_rank(view), frobenius_rank(view),
                 digits(view.gap_over_norm.value / view.gap_over_norm.mean, "{:.1f}"),
                 digits(view.gap_over_norm.z, "{:.1f}"), warning(head, view));
    }
    if (head.views.empty()) fmt::print("  {:<7} not run\n", fmt::format("{}.{}", head.layer, head.head));
  }
}

std::string token(const std::string& text, Index place, const HeadSet& heads, Index query) {
  if (!heads.self()) return fmt::format("«{}» at {}", text, place);
  return fmt::format("«{}»({:+})", text, place - heads.position(query));
}

void print_view(const HeadSet& heads, const ViewAudit& view) {
  const auto line = [](std::string_view label, const std::string& text) { print_field(label, 14, text); };
  fmt::print("{}\n", view.hidden ? "with the sinks hidden" : "own choices");
  line("queries", fmt::format("{} choose; N = {} in the problems of {} rows; {} held out", view.choosing, view.queries,
                              view.rows, view.held_out));
  for (const KindShare& one : view.kinds)
    line(&one == &view.kinds.front() ? "choices" : "", fmt::format("{}: {}", one.words, percent(one.share)));
  std::string curve;
  for (std::size_t r = 1; r <= view.agreement.size(); r *= 2)
    curve += fmt::format("{}rank {}: {}", r > 1 ? ", " : "", r, percent(view.agreement[r - 1]));
  line("truncated to", fmt::format("{} of held-out choices kept; r90 = {}, r95 = {}", curve, view.r90, view.r95));
  for (const auto& [name, facts] : {std::pair{"Frobenius", &view.frobenius}, std::pair{"nuclear", &view.nuclear}}) {
    line(name, facts->status == "not run"
                   ? facts->status
                   : fmt::format("{}: least norm {:.6g}, proven at least {:.6g}; the head reaches {} of the margin",
                                 facts->status, facts->objective, facts->dual_objective, percent(facts->rho)));
  }
  line("rank", fmt::format("{} for N = {} in the nuclear norm, {} in the Frobenius norm", nuclear_rank(view),
                           view.queries, frobenius_rank(view)));
  for (const auto& [name, facts] : {std::pair{"gap/|W|", &view.gap_over_norm}, std::pair{"rho", &view.rho}}) {
    if (facts->draws == 0) continue;
    line(name, fmt::format("{} beside {} +- {} of {} random heads, z = {}", digits(facts->value, "{:.3g}"),
                           digits(facts->mean, "{:.3g}"), digits(facts->deviation), facts->draws,
                           digits(facts->z, "{:.1f}")));
  }
  for (const KindPair& one : view.kind_pairs) {
    if (one.weight < 0.005) continue;
    line(&one == &view.kind_pairs.front() ? "weight" : "",
         fmt::format("{} on {} over {} ({} rows)", percent(one.weight), one.keep, one.drop, one.rows));
  }
  for (const SupportPair& one : view.pairs)
    line(&one == &view.pairs.front() ? "support pairs" : "",
         fmt::format("«{}» keeps {} over {}", one.query_text, token(one.keep_text, one.keep, heads, one.query),
                     token(one.drop_text, one.drop, heads, one.query)));
  for (const UncertainQuery& one : view.uncertain)
    line(&one == &view.uncertain.front() ? "least certain" : "",
         fmt::format("«{}»: {} or {}, gap {}", one.query_text, token(one.first_text, one.first, heads, one.query),
                     token(one.second_text, one.second, heads, one.query), digits(one.gap)));
}

/// The heads that --head names, such as 0.3,1.8.
std::vector<Index> heads_named(const HeadSet& heads, const std::string& names) {
  std::vector<Index> list;
  for (const std::string& name : CLI::detail::split(names, ',')) {
    Index found = -1;
    for (Index h = 0; h < heads.heads() && found < 0; ++h) {
      if (name == fmt::format("{}.{}", heads.layer(h), heads.number(h))) found = h;
    }
    if (found < 0)
      throw InputError(fmt::format("--head {}: there is no head {}; must be LAYER.HEAD, such as {}.{}", names, name,
                                   heads.layer(0), heads.number(0)));
    list.push_back(found);
  }
  return list;
}

/// The command that makes the page again.
std::string audit_command(const AuditOptions& options) {
  const AuditSettings &settings = options.settings, usual;
  std::vector<std::string> words{"attsvm", "audit", options.heads};
  const auto add = [&](const char* name, const auto& value, const auto& without) {
    if (value == without) return;
    words.emplace_back(name);
    words.push_back(fmt::format("{}", value));
  };
  const std::string nothing;
  add("--head", options.only, nothing);
  add("--queries", settings.queries, usual.queries);
  add("--drop", settings.drop, usual.drop);
  add("--nulls", settings.nulls, usual.nulls);
  add("--tolerance", settings.tolerance, usual.tolerance);
  add("--null-tolerance", settings.null_tolerance, usual.null_tolerance);
  add("--seed", settings.seed, usual.seed);
  add("--time-limit", settings.time_limit, usual.time_limit);
  add("--page", options.page, nothing);
  return shell_line(words);
}

/// InputError if the audit could not be written in the end.
void require_outputs(const Session& session, const AuditOptions& options) {
  for (const std::string& file : {options.out, options.page}) {
    if (file.empty()) continue;
    require_writable(file, session.force);
    require_other_file(file, options.heads);
  }
  if (options.page.empty()) return;
  if (const std::string problem = page_problem(); !problem.empty()) throw InputError(problem);
  if (options.page == options.out) throw InputError(fmt::format("{}: -o and --page name the same file", options.out));
}

void print_audit(const HeadSet& heads, const Audit& result, const AuditOptions& options, double seconds) {
  fmt::print("{}: {}, {}, {} of size {}; {:.3g} s\n", printable(options.heads), counted(heads.heads(), "head"),
             counted(heads.tokens(), "token"), counted(heads.queries(), "query"), heads.size(), seconds);
  print_grid(result);
  if (options.only.empty()) return;
  for (const HeadAudit& head : result.heads) {
    fmt::print("\nhead {}.{}, attention recomputed to {}\n", head.layer, head.head, digits(head.difference));
    for (const ViewAudit& view : head.views) print_view(heads, view);
  }
}

ExitCode run_audit(Session& session, AuditOptions& options) {
  AuditSettings& settings = options.settings;
  require_outputs(session, options);
  Threads threads(session.threads);
  const HeadSet heads = load_heads(options.heads, threads);
  if (!options.only.empty()) settings.only = heads_named(heads, options.only);
  const std::string& output = options.out.empty() ? options.page : options.out;
  std::optional<AuditJournal> journal;
  if (!output.empty()) settings.journal = &journal.emplace(output + ".journal", heads, settings, session.force);
  const Index reused = journal ? reused_heads(*journal, heads, settings) : 0;
  if (reused > 0) {
    const auto wanted = static_cast<Index>(wanted_heads(heads, settings).size());
    session.warn(fmt::format("{} of {} are done; the rest follows", reused, counted(wanted, "head")));
  }
  ProgressLine line(session);
  settings.progress = [&](const AuditProgress& now) {
    line.show(now.share, [&] { return fmt::format("{} of {} heads", now.done, now.heads); });
    return Session::interrupted();
  };
  Session::watch_interrupts();
  const Stopwatch watch;
  const Audit result = audit(heads, settings, threads);
  const double seconds = watch.seconds();
  line.clear();
  const bool interrupted = Session::interrupted() && !result.complete;
  if (interrupted && journal) {
    session.warn(
        fmt::format("{}.journal keeps the heads that are done; the same command continues from there", output));
  } else if (journal) {
    if (!options.out.empty()) write_npz(options.out, audit_arrays(result), session.force);
    if (!options.page.empty())
      write_report(options.page, audit_page(heads, result, settings, options.heads, audit_command(options)),
                   session.force);
    if (const Index others = journal->found() - reused; others == 0) {
      journal->remove();
    } else {
      session.warn(
          fmt::format("{}.journal keeps {} that this command did not ask for; without --head the audit of all "
                      "continues from there",
                      output, counted(others, "finished head")));
    }
  }
  if (session.json) {
    const auto written = [&](const std::string& file) { return file.empty() || interrupted ? Json() : Json(file); };
    Json fields{{"heads", audit_json(result)}, {"complete", result.complete}};
    fields.update(settings_json(settings));
    fields.update({{"reused", reused},
                   {"threads", threads.count()},
                   {"file", written(options.out)},
                   {"page", written(options.page)}});
    Session::print_json("audit", seconds, fields);
  } else {
    print_audit(heads, result, options, seconds);
  }
  if (interrupted) return kInterrupted;
  return result.complete && !any_unsolved(result) ? kDone : kLimit;
}

}  // namespace

void add_audit(CLI::App& program, Session& session) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* verb =
      session.add_verb(program, "audit", "Describe the attention heads of a model by their choices", R"(Examples:
  attsvm audit heads.npz                      a table of all heads
  attsvm audit heads.npz --head 1.8           one head with its support pairs and least certain queries as text
  attsvm audit heads.npz --page audit.html    a page: all heads as a grid, each head with its text
  attsvm audit heads.npz -o audit.npz --json  everything for scripts
HEADS holds keys, queries and text of each head (docs/formats.md); attsvm.torch writes it from a PyTorch model.
Each head is shown with its own choices, and with the sinks hidden. Choices are the largest logits; the numbers say how
they are made on this text, not what the head is for.
With -o or --page, heads that are done are kept in FILE.journal until all are: the same command continues after it was
stopped or killed. With --head it leaves the other heads in it.
Exit codes: 0 done, 4 some heads ran into the time limit or a problem stalled, 130 interrupted)",
                       [&session, options] { return run_audit(session, *options); });
  AuditSettings& settings = options->settings;
  verb->add_option("HEADS", options->heads, "File of heads")->required();
  Session::add_output(verb, options->out, session.force);
  verb->add_option("--page", options->page, "Page to write: one HTML file that works from disk")->check(output_name());
  verb->add_option("--head", options->only, "Only these heads, in detail, such as 0.3,1.8 (layer.head)");
  verb->add_option("--queries", settings.queries,
                   "Queries per margin problem; numbers of heads compare at equal N only (default: 1000)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--drop", settings.drop, "Share of queries left out for their small gaps (default: 0.1)")
      ->check(CLI::Range(0.0, 0.99));
  verb->add_option("--nulls", settings.nulls, "Random heads to compare each head with (default: 10)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--tolerance", settings.tolerance, "Relative gap of the head's own problems (default: 1e-8)")
      ->check(positive_number());
  verb->add_option("--null-tolerance", settings.null_tolerance,
                   "Relative gap of those of the random heads (default: 1e-3)")
      ->check(positive_number());
  verb->add_option("--seed", settings.seed, "Seed of the random heads (default: 0)");
  verb->add_option("--time-limit", settings.time_limit, "Seconds per head, after which it keeps what it has")
      ->check(positive_number());
}

}  // namespace attsvm::internal
