#include <fmt/format.h>

#include <memory>

#include "session.h"

namespace attsvm {
namespace {

struct Options {
  std::string task, solution, norm;
};

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
  const Verification verdict = verify(task, solution);
  if (session.json) {
    Json fields{{"valid", verdict.valid},
                {"status", solution.w_only ? Json(nullptr) : Json(verdict.status)},
                {"objective", verdict.objective},
                {"dual_objective", verdict.dual_objective},
                {"gap", verdict.gap},
                {"violation", verdict.violation},
                {"residual", verdict.residual},
                {"norm", solution.norm},
                {"tolerance", solution.tolerance},
                {"seed", nullptr},
                {"threads", threads.count()}};
    if (!verdict.valid) fields["reason"] = verdict.reason;
    Session::print_json("verify", watch.seconds(), fields);
  } else if (!verdict.valid) {
    fmt::print("{}: not valid: {}\n", options.solution, verdict.reason);
  } else if (verdict.status == "infeasible") {
    fmt::print("{}: valid: no W meets the rows (|A(dual)| = {:.2g})\n", options.solution, verdict.residual);
  } else if (solution.w_only) {
    fmt::print("{}: valid: W meets every row, norm {:.12g}; there are no multipliers to bound it with\n",
               options.solution, verdict.objective);
  } else {
    fmt::print("{}: valid: {}, objective {:.12g}, proven at least {:.12g}, gap {:.2g}, violation {:.2g}\n",
               options.solution, verdict.status, verdict.objective, verdict.dual_objective, verdict.gap,
               verdict.violation);
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
Rebuilds every row from the task, recomputes feasibility, objective and bound in extended precision with code of
its own, and compares. A file that holds W alone (another solver's answer) is judged on W.
Exit codes: 0 valid, 5 not valid)",
                                    [&session, options] { return run(session, *options); });
  verb->add_option("TASK", options->task, "Task file")->required();
  verb->add_option("SOLUTION", options->solution, "Solution file")->required();
  verb->add_option("--norm", options->norm,
                   "Norm the answer is for, where the file does not say: fro, nuc or lp:P (default: fro)");
}

}  // namespace attsvm
