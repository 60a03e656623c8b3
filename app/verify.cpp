#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/refuse.h"
#include "io/claim_part.h"
#include "margin/stored_solution.h"
#include "options.h"
#include "ranks/ranks.h"
#include "report/answer.h"
#include "session.h"
#include "task_of_ranks.h"
#include "verify/fields.h"
#include "verify/progress.h"

namespace attsvm::internal {
namespace {

struct VerifyOptions {
  std::string task, solution, norm;
  VerifySettings settings{};
};

// Twelve digits, rounded outwards so that the printed bound still holds.
constexpr double kTwelveDigits = 5e-12, kSafely = 0.995;  // kSafely does the same for three digits
std::string at_most(double bound) { return fmt::format("{:.12g}", bound * (1 + kTwelveDigits)); }
std::string at_least(double bound) { return fmt::format("{:.12g}", bound * (1 - kTwelveDigits)); }

/// The proven statements, one per line.
/// Whether a row asks for 1 is read off `rhs`.
std::string theorem(const StoredSolution& solution, std::span<const double> rhs, const Verification& verdict) {
  const std::string norm = norm_words(solution.norm);
  std::string words;
  const auto say = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    words += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  };
  if (verdict.status == "infeasible") {
    if (std::isinf(verdict.norm_bound)) {
      say("No W meets these rows: they contradict each other.");
    } else {
      say("No W of Frobenius norm up to {:.3g} meets these rows.", verdict.norm_bound * kSafely);
    }
  } else if (solution.is_soft()) {
    say("Half the squared Frobenius norm of this W and its slacks times their penalties add up to at most {}.",
        at_most(verdict.objective));
    say("No W costs less than {}.", at_least(verdict.dual_objective));
  } else {
    const bool any = std::find(rhs.begin(), rhs.end(), 1.0) != rhs.end();
    if (!any && !solution.w_only) {
      say("This W has {} at most {}; no row asks for more than 0.", norm, at_most(verdict.objective));
    } else if (verdict.scaling > 0) {
      say("This W, of {} at most {}, meets every row >= 1 when scaled by 1 + {:.2g}.", norm, at_most(verdict.objective),
          verdict.scaling);
    } else {
      say("This W, of {} at most {}, meets every row >= 1.", norm, at_most(verdict.objective));
    }
    if (verdict.homogeneous > 0) {
      say("It misses rows = 0 and >= 0 by at most {:.2g} of |delta| |W| |zeta|.", verdict.homogeneous);
      if (!std::isnan(verdict.distance)) say("A matrix that meets them is {:.2g} of |W| away.", verdict.distance);
    }
    if (!solution.w_only) say("Every W that meets these rows has norm at least {}.", at_least(verdict.dual_objective));
    if (verdict.rank) say("This W has rank {}, the number of columns of K and Q.", *verdict.rank);
  }
  if (!verdict.question.empty()) say("These rows: {}.", verdict.question);
  say("Arithmetic: {}.", verdict.arithmetic);
  if (!verdict.remark.empty()) say("Not proven: {}.", verdict.remark);
  return words;
}

Json json_of(const StoredSolution& solution, const Verification& verdict, const VerifySettings& settings, int threads) {
  Json fields;
  for_each_field(verdict, [&]<class Value>(const std::string& name, const Value& value) {
    if (name == "reason") return;
    if constexpr (std::is_same_v<Value, std::optional<Index>>) {
      fields[name] = value ? Json(*value) : Json(nullptr);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      fields[name] = value.empty() ? Json(nullptr) : Json(value);
    } else {
      fields[name] = value;
    }
  });
  fields["status"] = solution.w_only ? Json(nullptr) : Json(verdict.status);
  fields["penalty"] = penalty_json(solution);
  fields.update({{"norm", solution.norm},
                 {"problem", solution.problem},
                 {"tolerance", settings.tolerance},
                 {"seed", nullptr},
                 {"threads", threads}});
  if (!verdict.valid) fields["reason"] = verdict.reason;
  return fields;
}

/// --norm, where the file does not say it.
void take_norm(const VerifyOptions& options, StoredSolution& solution) {
  if (options.norm.empty()) return;
  const std::string norm = Norm::parse(options.norm).name();
  if (!solution.w_only && norm != solution.norm)
    throw InputError(fmt::format("{}: norm is {}, but --norm says {}", options.solution, solution.norm, norm));
  solution.norm = norm;
}

/// What this rank has of the solution, if ranks share the task.
std::optional<SharedClaim> own_claim(const VerifyOptions& options, const TaskOfRanks& loaded, Threads& threads) {
  const SharedTask* part = loaded.part();
  if (part == nullptr || !part->ask) return {};
  SharedClaim claim = load_claim(options.solution, {part->part, part->first, part->queries}, threads);
  take_norm(options, claim.claim);
  return claim;
}

ExitCode run_verify(const Session& session, const VerifyOptions& options) {
  Threads threads(session.threads);
  const TaskOfRanks loaded(options.task, TaskOfRanks::Sharing::queries, threads);
  const std::optional<SharedClaim> shared = own_claim(options, loaded, threads);
  if (!ranks().first()) {
    ClaimMember member(shared ? &*shared : nullptr, ranks().rank());
    ranks().help([&](const std::string& job) { return member.answer(job); });
    return kDone;
  }
  ProgressLine line(session);
  const Stopwatch watch;
  const TellVerify tell = [&](const VerifyProgress& now) {
    line.show(now.share, [&] { return std::string(now.part); });
  };
  std::optional<Verification> found;
  if (shared) found = verify(*shared, options.settings, tell, loaded.task().ask);
  StoredSolution solution = found ? shared->claim : load_solution(options.solution, threads);
  std::span<const double> rhs = solution.rhs;
  if (found) {
    if (shared->rhs.given()) rhs = f64_span(shared->rhs);
  } else {
    take_norm(options, solution);
    const AttentionTask task = shared ? load_task(options.task, threads) : *loaded.task().part;
    solution = with_place(options.task, [&] { return completed(task, std::move(solution)); });
    rhs = solution.rhs;
    found = verify(task, solution, options.settings, tell);
  }
  const Verification& verdict = *found;
  line.clear();
  if (session.json) {
    Session::print_json("verify", watch.seconds(), json_of(solution, verdict, options.settings, threads.count()));
  } else if (!verdict.valid) {
    fmt::print("{}: not valid: {}\n", printable(options.solution), verdict.reason);
    if (!verdict.question.empty()) fmt::print("  The rows: {}.\n", verdict.question);
  } else {
    fmt::print("{}: valid", printable(options.solution));
    if (solution.w_only) {
      fmt::print(": W meets every row; without multipliers its norm is not bounded from below\n");
    } else if (verdict.status == "infeasible") {
      fmt::print(": infeasible (|A(dual)| = {:.2g})\n", verdict.residual);
    } else {
      fmt::print(": {}, objective {:.12g}, proven at least {:.12g}, gap {:.2g}, violation {:.2g}\n", verdict.status,
                 verdict.objective, verdict.dual_objective, verdict.gap, verdict.violation);
    }
    fmt::print("{}", theorem(solution, rhs, verdict));
  }
  return verdict.valid ? kDone : kNotValid;
}

}  // namespace

void add_verify(CLI::App& program, Session& session) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* verb = session.add_verb(program, "verify", "Check a solution against its task, independently", R"(Examples:
  attsvm generate random --seed 1 -o task.npz
  attsvm solve task.npz -o solution.npz
  attsvm verify task.npz solution.npz
Rebuilds every row from the task and proves what the file claims, in ball arithmetic and with none of the solvers'
code: W meets the rows, no W that meets them has a norm below the bound, and norm and bound differ by at most
--tolerance. If a file holds only W (another solver's answer), verify checks that W meets the rows.
Exit codes: 0 valid, 5 not valid)",
                                    [&session, options] { return run_verify(session, *options); });
  verb->add_option("TASK", options->task, "Task file, or folder of shards")->required();
  verb->add_option("SOLUTION", options->solution, "Solution file")->required();
  verb->add_option("--tolerance", options->settings.tolerance,
                   "Largest relative gap of a valid optimum, whatever the file says (default: 1e-8)")
      ->check(positive_number());
  verb->add_option("--norm", options->norm, "Norm that was minimised, where the file does not say (default: fro)")
      ->type_name(kNormForms);
}

}  // namespace attsvm::internal
