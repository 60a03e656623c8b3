#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/refuse.h"
#include "io/hierarchy_data.h"
#include "io/output.h"
#include "options.h"
#include "stack_answer.h"
#include "train/usual_records.h"

namespace attsvm::internal {
namespace {

struct StackOptions {
  std::string task, out, optimizer = "ngd", tasks_out;
  std::optional<Index> records;
  bool full = false;
  StackSettings settings;
  HierarchySettings judged;
};

std::string head_task_name(const std::string& folder, Index layer, Index head) {
  return (std::filesystem::path(folder) / fmt::format("layer{}_head{}.npz", layer, head)).string();
}

/// InputError if what each head reads could not be written in the end. Makes the folder.
void require_head_tasks_writable(const StackOptions& options, bool replace) {
  const std::string& folder = options.tasks_out;
  make_folder(folder);
  for (Index layer = 0; layer < options.settings.layers; ++layer) {
    for (Index head = 0; head < options.settings.heads; ++head) {
      const std::string name = head_task_name(folder, layer, head);
      require_writable(name, replace);
      require_other_file(name, options.task);
      if (std::filesystem::weakly_canonical(name) == std::filesystem::weakly_canonical(options.out))
        throw InputError(fmt::format("{}: cannot write: it is also the file of the stack", name));
    }
  }
}

/// Writes what each head reads in the end, with what it selects, as a task of its own.
void write_head_tasks(const std::string& folder, const AttentionTask& task, const Stack& stack, Askers askers,
                      const std::vector<HeadMargin>& heads, bool replace, Threads& threads) {
  const std::vector<AttentionTask> read = layer_tasks(task, stack, askers, threads);
  for (const HeadMargin& head : heads) {
    TaskArrays arrays = read[static_cast<std::size_t>(head.layer)].arrays();
    arrays.select = Array::own(head.selected, {std::ssize(head.selected)});
    save_task(head_task_name(folder, head.layer, head.head), AttentionTask(std::move(arrays)), {}, replace);
  }
}

std::string ended(TrainStop stop) {
  if (stop == TrainStop::finished) return "";
  if (stop == TrainStop::asked) return Session::interrupted() ? "interrupted" : "time limit";
  return std::string(name_of(stop));
}

Json run_json(const StackRun& run, const StackOptions& options, int threads) {
  const TrainSettings& training = options.settings.training;
  const std::string why = ended(run.stop);
  return {{"loss", run.last.loss},
          {"log_loss", run.last.log_loss},
          {"log_gradient_norm", run.last.log_gradient},
          {"steps", run.last.step},
          {"stopped", why.empty() ? Json(nullptr) : Json(why)},
          {"layers", options.settings.layers},
          {"heads", options.settings.heads},
          {"mlp", options.settings.mlp},
          {"causal", options.settings.causal},
          {"values", name_of(options.settings.values)},
          {"train_values", options.settings.train_values},
          {"one_norm", options.settings.one_norm},
          {"optimizer", optimizer_text(training)},
          {"step", training.step},
          {"steps_asked", training.steps},
          {"schedule", name_of(training.schedule)},
          {"init", name_of(training.init)},
          {"loss_function", name_of(training.loss)},
          {"seed", training.seed},
          {"time_limit", training.time_limit},
          {"records", std::ssize(run.records)},
          {"threads", threads},
          {"file", options.out}};
}

ExitCode run_stack(Session& session, StackOptions& options) {
  StackSettings& settings = options.settings;
  TrainSettings& training = settings.training;
  const std::string complaint = set_optimizer(options.optimizer, training);
  if (!complaint.empty()) throw InputError(fmt::format("--optimizer {}: {}", options.optimizer, complaint));
  settings.causal = !options.full;
  require_writable(options.out, session.force);
  require_other_file(options.out, options.task);
  Threads threads(session.threads);
  const AttentionTask task = load_task(options.task, threads);
  with_place(options.task, [&] { require_stackable(task); });
  training.record =
      options.records ? RecordPlan::spread(training.steps, *options.records) : usual_records(task, settings);
  if (!options.tasks_out.empty()) require_head_tasks_writable(options, session.force);
  ProgressLine line(session);
  const Stopwatch watch;
  training.progress = [&](const TrainProgress& now) {
    line.show(static_cast<double>(now.step) / static_cast<double>(training.steps),
              [&] { return fmt::format("step {} of {}", now.step, training.steps); });
    return Session::interrupted();
  };
  Session::watch_interrupts();
  const StackRun run = train_stack(task, settings, threads);
  const double trained = watch.seconds();
  line.clear();
  save_stack(options.out, task, settings, run, session.force);
  options.judged.seed = training.seed;
  options.judged.progress = watch_judging(line);
  if (training.time_limit > 0) options.judged.time_limit = std::max(training.time_limit - trained, 1e-9);
  const Stopwatch judging;
  const std::vector<HeadMargin> heads = hierarchy(task, run.records, options.judged, threads);
  const double seconds = trained + judging.seconds();
  line.clear();
  if (!options.tasks_out.empty())
    write_head_tasks(options.tasks_out, task, run.last.stack, options.judged.askers, heads, session.force, threads);
  if (session.json) {
    Json fields = run_json(run, options, threads.count());
    fields.update(hierarchy_json(run.records, heads, options.judged));
    Session::print_json("stack", seconds, fields);
  } else {
    const std::string why = ended(run.stop);
    fmt::print("{}: {} of {}{}, {}{}\n", printable(options.out), counted(settings.layers, "layer"),
               counted(settings.heads, "head"),
               settings.mlp > 0 ? fmt::format(", MLP of {}", counted(settings.mlp, "unit")) : "",
               counted(run.last.step, "step"), why.empty() ? "" : ", stopped: " + why);
    fmt::print("  {:<12} {:.12g} ({})\n", "loss", run.last.loss, name_of(training.loss));
    print_hierarchy(heads, options.judged);
  }
  const ExitCode code = end_hierarchy(session, heads);
  if (Session::interrupted()) return kInterrupted;
  return run.stop == TrainStop::asked || run.stop == TrainStop::overflow ? kLimit : code;
}

}  // namespace

std::vector<const CLI::Option*> add_askers(CLI::App* verb, HierarchySettings& settings) {
  CLI::Option* askers =
      verb->add_option("--askers", settings.askers,
                       "Positions whose selections a head's SVM has to meet: live, on which the output depends once "
                       "attention has saturated, or all (default: live)")
          ->transform(one_of<Askers>({{"live", Askers::live}, {"all", Askers::all}}));
  CLI::Option* null = verb->add_option("--null", settings.null_draws,
                                       "Random matrices beside which a head of a stack is judged (default: 10)")
                          ->check(CLI::NonNegativeNumber);
  return {askers, null};
}

void add_stack(CLI::App& program, Session& session) {
  auto options = std::make_shared<StackOptions>();
  CLI::App* verb = session.add_verb(program, "stack", "Train layers of heads, and judge each beside its own SVM",
                                    R"(Examples:
  attsvm generate random --attention prompt --seed 1 -o task.npz
  attsvm stack task.npz -o stack.npz                      two causal layers of one head
  attsvm stack task.npz --layers 3 --heads 2 --full -o stack.npz
  attsvm stack task.npz --head-tasks heads -o stack.npz   what each head reads and selects, as task files for
                                                          solve and verify
  attsvm check task.npz --run stack.npz                   judge a stack again
Tokens are added to what heads make of them: x + sum over heads of V' (attention over x). The output is read at the
query's token, or at the last one. V is random and stays as it is, and so does an MLP, unless --train-values is given.
Exit codes: 0 done, 4 stopped by the time limit or by overflow, or an SVM stalled, 130 interrupted)",
                                    [&session, options] { return run_stack(session, *options); });
  StackSettings& s = options->settings;
  TrainSettings& t = s.training;
  verb->add_option("TASK", options->task, "Task file, without queries of its own and without keys")->required();
  Session::add_output(verb, options->out, session.force)->required();
  verb->add_option("--layers", s.layers, "Layers (default: 2)")->check(CLI::Range(Index{1}, Index{1000}));
  verb->add_option("--heads", s.heads, "Heads of every layer (default: 1)")->check(CLI::Range(Index{1}, Index{1000}));
  verb->add_option("--mlp", s.mlp, "ReLU units of an MLP after the attention of every layer (default: no MLP)")
      ->check(CLI::Range(Index{1}, Index{1'000'000}));
  verb->add_flag("--full", options->full, "Every token sees all tokens (default: those up to itself)");
  verb->add_option("--values", s.values, "The V with which heads start (default: random)")
      ->transform(one_of<StackValues>({{"random", StackValues::random}, {"identity", StackValues::identity}}));
  verb->add_flag("--train-values", s.train_values, "Train V too, and the MLP");
  verb->add_flag("--one-norm", s.one_norm, "Measure a step over all matrices together, not matrix by matrix");
  verb->add_option("--optimizer", options->optimizer, "As of train, but for polyak (default: ngd)")
      ->type_name(kOptimizerForms);
  verb->add_option("--step", t.step, "Size of a step (default: 0.1)")->check(positive_number());
  verb->add_option("--steps", t.steps, "Number of steps (default: 2000)")->check(CLI::Range(Index{0}, Index{1} << 52));
  add_choice(verb, "--schedule", t.schedule, "As of train (default: constant)");
  add_loss(verb, t.loss);
  verb->add_option("--init", t.init, "The W with which heads start (default: zero)")
      ->transform(one_of<Init>({{"zero", Init::zero}, {"random", Init::random}}));
  verb->add_option("--seed", t.seed, "Seed of V, of an MLP, of a random start and of the null (default: 0)");
  verb->add_option("--records", options->records,
                   "Points to record, first and last included (default: 100, fewer where weights are large)")
      ->check(CLI::Range(Index{2}, Index{1} << 40));
  add_askers(verb, options->judged);
  verb->add_option("--head-tasks", options->tasks_out,
                   "Folder for one task file per head: what it reads in the end, with its selection");
  verb->add_option("--time-limit", t.time_limit, "Seconds after which to stop, training and judging together")
      ->check(positive_number());
}

}  // namespace attsvm::internal
