#include <fmt/format.h>

#include <memory>

#include "session.h"

namespace attsvm {
namespace {

struct Options {
  std::string task, solution, norm;
  VerifySettings settings{};
};

std::string norm_words(const std::string& norm) {
  if (norm == "fro") return "Frobenius norm";
  return norm == "nuc" ? "nuclear norm" : "entrywise norm " + norm;
}

/// What was proven, as sentences.
std::string theorem(const StoredSolution& solution, const Verification& verdict) {
  const std::string norm = norm_words(solution.norm);
  std::string words;
  const auto say = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    words += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  };
  if (verdict.status == "infeasible") {
    say("No W of Frobenius norm below {:.3g} meets these rows: they contradict each other.", verdict.norm_bound);
  } else {
    if (verdict.scaling > 0) {
      say("This W, of {} at most {:.12g}, meets every row >= 1 when scaled by 1 + {:.2g}.", norm, verdict.objective,
          verdict.scaling);
    } else {
      say("This W, of {} at most {:.12g}, meets every row >= 1.", norm, verdict.objective);
    }
    if (verdict.homogeneous > 0)
      say("It meets rows = 0 and >= 0 to {:.2g} of their size times its own.", verdict.homogeneous);
    if (!solution.w_only) say("Every W that meets these rows has norm at least {:.12g}.", verdict.dual_objective);
    if (verdict.rank) say("Its rank is {}, the number of columns of K and Q.", *verdict.rank);
  }
  if (!verdict.question.empty()) say("These rows: {}.", verdict.question);
  say("Arithmetic: {}.", verdict.arithmetic);
  return words;
}

Json json_of(const StoredSolution& solution, const Verification& verdict, const VerifySettings& settings, int threads) {
  Json fields{{"valid", verdict.valid},
              {"status", solution.w_only ? Json(nullptr) : Json(verdict.status)},
              {"objective", verdict.objective},
              {"dual_objective", verdict.dual_objective},
              {"gap", verdict.gap},
              {"violation", verdict.violation},
              {"scaling", verdict.scaling},
              {"homogeneous", verdict.homogeneous},
              {"residual", verdict.residual},
              {"norm_bound", verdict.norm_bound},
              {"rank", verdict.rank ? Json(*verdict.rank) : Json(nullptr)},
              {"own_selection", verdict.own_selection},
              {"relaxed", verdict.relaxed},
              {"question", verdict.question.empty() ? Json(nullptr) : Json(verdict.question)},
              {"arithmetic", verdict.arithmetic.empty() ? Json(nullptr) : Json(verdict.arithmetic)},
              {"norm", solution.norm},
              {"tolerance", settings.tolerance},
              {"seed", nullptr},
              {"threads", threads}};
  if (!verdict.valid) fields["reason"] = verdict.reason;
  return fields;
}

ExitCode run(const Session& session, const Options& options) {
  Threads threads(session.threads);
  const AttentionTask task = load_task(options.task, threads);
  StoredSolution solution = load_solution(options.solution, threads);
  if (!options.norm.empty()) {
    const std::string norm = Norm::parse(options.norm).name();
    if (!solution.w_only && norm != solution.norm)
      throw InputError(fmt::format("{}: norm is {}, but --norm says {}", options.solution, solution.norm, norm));
    solution.norm = norm;
  }
  with_place(options.task, [&] { complete(task, solution); });
  const Stopwatch watch;
  const Verification verdict = verify(task, solution, options.settings);
  if (session.json) {
    Session::print_json("verify", watch.seconds(), json_of(solution, verdict, options.settings, threads.count()));
  } else if (!verdict.valid) {
    fmt::print("{}: not valid: {}\n", options.solution, verdict.reason);
    if (!verdict.question.empty()) fmt::print("  The rows: {}.\n", verdict.question);
  } else {
    fmt::print("{}: valid", options.solution);
    if (solution.w_only) {
      fmt::print(": W meets every row; there are no multipliers to bound its norm with\n");
    } else if (verdict.status == "infeasible") {
      fmt::print(": infeasible (|A(dual)| = {:.2g})\n", verdict.residual);
    } else {
      fmt::print(": {}, objective {:.12g}, proven at least {:.12g}, gap {:.2g}, violation {:.2g}\n", verdict.status,
                 verdict.objective, verdict.dual_objective, verdict.gap, verdict.violation);
    }
    fmt::print("{}", theorem(solution, verdict));
  }
  return verdict.valid ? kDone : kNotValid;
}

}  // namespace

void add_verify(CLI::App& program, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = session.add_verb(program, "verify", "Check a solution against its task, independently", R"(Examples:
  attsvm generate random --seed 1 -o task.npz
  attsvm solve task.npz -o solution.npz
  attsvm verify task.npz solution.npz
Rebuilds every row from the task and proves what the file claims, in ball arithmetic and with code of its own: rows
are met, no W that meets them has a smaller norm than the bound, the two are as close as --tolerance says.
A file that holds W alone (another solver's answer) is judged on W.
Exit codes: 0 valid, 5 not valid)",
                                    [&session, options] { return run(session, *options); });
  verb->add_option("TASK", options->task, "Task file")->required();
  verb->add_option("SOLUTION", options->solution, "Solution file")->required();
  verb->add_option("--tolerance", options->settings.tolerance,
                   "Relative gap that an optimum may have, whatever the file says (default: 1e-8)")
      ->check(positive_number());
  verb->add_option("--norm", options->norm,
                   "Norm the answer is for, where the file does not say: fro, nuc or lp:P (default: fro)");
}

}  // namespace attsvm
