#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "attsvm/selector.h"
#include "base/refuse.h"
#include "io/output.h"
#include "io/start_file.h"
#include "io/train_into.h"
#include "options.h"
#include "ranks/ranks.h"
#include "selector_options.h"
#include "task_of_ranks.h"
#include "theory/head_division.h"

namespace attsvm::internal {
namespace {

struct TrainOptions {
  std::string task, out, optimizer = "ngd", epsilon, betas, temperature, init, record;
  double checkpoint = 5;
  bool resume = false;
  TrainSettings settings;
};

void parse_numbers(TrainOptions& options) {
  TrainSettings& settings = options.settings;
  if (!options.epsilon.empty()) {
    const auto epsilon = parse_list<double>(options.epsilon, "--epsilon", "one number, or two such as 1e-9,1e-12");
    if (epsilon.size() > 2) throw InputError(fmt::format("--epsilon {}: must be one or two numbers", options.epsilon));
    settings.epsilon = epsilon.front();
    if (epsilon.size() == 2) {
      if (!settings.joint)
        throw InputError(fmt::format("--epsilon {}: a second number needs --joint", options.epsilon));
      settings.head_epsilon = epsilon.back();
    }
  }
  if (!options.betas.empty()) {
    const auto betas = parse_list<double>(options.betas, "--betas", "two numbers such as 0.9,0.99");
    if (betas.size() != 2) throw InputError(fmt::format("--betas {}: must be two numbers", options.betas));
    settings.betas = {betas[0], betas[1]};
  }
  if (!options.temperature.empty()) settings.temperature = parse_temperature(options.temperature);
}

void parse(TrainOptions& options) {
  TrainSettings& settings = options.settings;
  const std::string complaint = set_optimizer(options.optimizer, settings);
  if (!complaint.empty()) throw InputError(fmt::format("--optimizer {}: {}", options.optimizer, complaint));
  parse_numbers(options);
  if (options.init == "zero") settings.init = Init::zero;
  if (options.init == "random") settings.init = Init::random;
  if (options.record.starts_with("every:")) {
    const auto every = parse_list<Index>(options.record.substr(6), "--record every:", "a number of steps");
    settings.record.every = every.front();
    if (every.size() != 1) throw InputError(fmt::format("--record {}: must be one number of steps", options.record));
    if (settings.record.every < 1) throw InputError(fmt::format("--record {}: must be at least 1", options.record));
  } else if (!options.record.empty()) {
    auto& at = settings.record.at;
    at = parse_list<Index>(options.record, "--record", "step numbers separated by commas, or every:K");
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
  }
  require_usable(settings);  // what no task could mend is not the task file's fault
}

/// Why a run ended early; empty when it took all its steps.
std::string stopped(TrainStop stop) {
  if (stop == TrainStop::finished) return "";
  if (stop == TrainStop::asked) return Session::interrupted() ? "interrupted" : "time limit";
  return std::string(name_of(stop));
}

/// The trained head without draws: how spread its attention is, and what its hard selection does.
struct Inference {
  double entropy;
  HardSelection hard;
};

struct Attention {
  double min = 1, mean = 0;
};

Attention selected_weights(const AttentionMap& map) {
  Attention weights;
  const auto queries = static_cast<Index>(map.selected.size());
  for (Index i = 0; i < queries; ++i) {
    weights.min = std::min(weights.min, map.weight(i));
    weights.mean += map.weight(i);
  }
  weights.mean /= static_cast<double>(queries);
  return weights;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// (q), or (H,q) of many heads
Json selected_json(const AttentionMap& map, Index heads) {
  if (heads == 1) return map.selected;
  Json list = Json::array();
  const auto queries = static_cast<Index>(map.selected.size()) / heads;
  for (auto head = map.selected.begin(); head != map.selected.end(); head += queries)
    list.push_back(std::vector<Index>(head, head + queries));
  return list;
}

Json to_json(const TrainedRun& run, const AttentionMap& map, const TrainOptions& options, Index resumed_from,
             const Inference& inference, int threads) {
  const TrainSettings settings = completed(options.settings);
  const OptimizerFacts& facts = facts_of(settings.optimizer);
  const Attention weights = selected_weights(map);
  Json fields{
      {"loss", run.loss},
      {"log_loss", run.log_loss},
      {"norm", run.norm},
      {"log_gradient_norm", run.log_gradient},
      {"selected", selected_json(map, settings.heads)},
      {"attention_min", weights.min},
      {"attention_mean", weights.mean},
      {"steps", run.steps},
      {"stopped", text_or_null(stopped(run.stop))},
      {"param", name_of(settings.param)},
      {"joint", settings.joint},
      {"heads", settings.heads},
      {"shared_norm", settings.shared_norm},
      {"width", settings.param == Parametrization::KQ ? Json(run.K.cols()) : Json(nullptr)},
      {"optimizer", optimizer_text(settings)},
      {"momentum", facts.momentum ? Json(*settings.momentum) : Json(nullptr)},
      {"betas", facts.betas ? Json(*settings.betas) : Json(nullptr)},
      {"newton_schulz", settings.newton_schulz == 0 ? Json(nullptr) : Json(settings.newton_schulz)},
      {"normalize", settings.normalize},
      {"step", settings.step},
      {"steps_asked", settings.steps},
      {"schedule", name_of(settings.schedule)},
      {"epsilon", *settings.epsilon},
      {"epsilon_head", *settings.head_epsilon},
      {"ridge", settings.ridge},
      {"weight_decay", *settings.weight_decay},
      {"dropout", settings.dropout},
      {"batch", settings.batch == 0 ? Json(nullptr) : Json(settings.batch)},
      {"label_smoothing", settings.label_smoothing},
      {"selector", name_of(settings.selector)},
      {"concentration", settings.selector == Selector::dirichlet ? Json(settings.concentration) : Json(nullptr)},
      {"entropy", settings.entropy},
      {"temperature", settings.temperature},
      {"attention_entropy", inference.entropy},
      {"hard_loss", inference.hard.loss},
      {"hard_accuracy", inference.hard.accuracy},
      {"stop_direction", settings.stop_direction},
      {"arithmetic", name_of(settings.arithmetic)},
      {"init", text_or_null(options.init)},
      {"record", text_or_null(options.record)},
      {"seed", settings.seed},
      {"time_limit", options.settings.time_limit},
      {"resumed_from", resumed_from < 0 ? Json(nullptr) : Json(resumed_from)},
      {"threads", threads},
      {"file", options.out}};
  fields["loss_function"] = name_of(settings.loss);
  return fields;
}

void print_table(const TrainedRun& run, const AttentionMap& map, const TrainOptions& options,
                 const Inference& inference, double seconds) {
  const TrainSettings& settings = options.settings;
  const auto line = [](const char* label, const std::string& text) { fmt::print("  {:<12} {}\n", label, text); };
  const Attention weights = selected_weights(map);
  const std::string why = stopped(run.stop);
  fmt::print("{}: {}{} trained for {}{}\n", printable(options.out),
             settings.param == Parametrization::KQ ? "(K,Q)" : name_of(settings.param),
             settings.heads > 1 ? fmt::format(" of {} heads", settings.heads) : "", counted(run.steps, "step"),
             why.empty() ? "" : ", stopped: " + why);
  line("optimizer",
       fmt::format("{}, step {}, {} arithmetic", rule_words(settings), settings.step, name_of(settings.arithmetic)));
  line("loss", run.loss == 0 && std::isfinite(run.log_loss)
                   ? fmt::format("e^{:.6g} ({})", run.log_loss, name_of(settings.loss))
                   : fmt::format("{:.12g} ({})", run.loss, name_of(settings.loss)));
  line("norm", fmt::format("{:.12g} (Frobenius norm of W)", run.norm));
  line("gradient", std::isfinite(run.log_gradient) ? fmt::format("10^{:.4g}", run.log_gradient / std::log(10.0)) : "0");
  constexpr std::size_t kShown = 20;
  if (settings.heads > 1) {
    const HeadDivision division = division_of(map.selected, settings.heads);
    line("selections", fmt::format("{} different ones of {} heads, {:.3g} different tokens per query",
                                   division.distinct, settings.heads, division.tokens_per_query));
  }
  const auto shown = std::min(kShown, map.selected.size());
  line("selected",
       fmt::format("{}{}", fmt::join(map.selected.begin(), map.selected.begin() + static_cast<Index>(shown), " "),
                   shown < map.selected.size() ? " …" : ""));
  line("attention", fmt::format("{:.6g} on the {} on average, {:.6g} at least", weights.mean,
                                map.label_weights.empty() ? "selected token" : "label", weights.min));
  if (settings.selector != Selector::soft || settings.entropy > 0) {
    line("selector", fmt::format("{}; at inference {:.6g} % of the selected tokens have the label's sign",
                                 name_of(settings.selector), 100 * inference.hard.accuracy));
    line("entropy", fmt::format("{:.6g} on average", inference.entropy));
  }
  line("work", fmt::format("{:.1e} s", seconds));
}

/// Warns about runs that ended early or hardly move.
void warn_of_end(const Session& session, const TrainedRun& run, const TrainOptions& options) {
  if (run.stop == TrainStop::overflow) {
    session.warn(fmt::format("step {} would overflow; the run ends before it (try a smaller --step)", run.steps + 1));
  }
  if (run.stop == TrainStop::zero_gradient && options.settings.param == Parametrization::KQ && run.steps == 0) {
    session.warn("K = Q = 0 is a saddle point, where the gradient is zero; start with --init random");
  }
  if (run.stop == TrainStop::asked) {
    session.warn(fmt::format("the same command with --resume continues from step {}", run.steps));
  }
  const bool scaled = options.settings.optimizer == Optimizer::gd ||
                      (options.settings.optimizer == Optimizer::mirror && !options.settings.normalize);
  if (scaled && std::isfinite(run.log_gradient) &&
      std::exp(run.log_gradient) * options.settings.step < 1e-17 * run.norm) {
    session.warn(fmt::format("the gradient (10^{:.3g}) is too small to move W; --optimizer ngd still moves it",
                             run.log_gradient / std::log(10.0)));
  }
}

ExitCode run_train(const Session& session, TrainOptions& options) {
  parse(options);
  TrainSettings& settings = options.settings;
  Threads threads(session.threads);
  using Sharing = TaskOfRanks::Sharing;
  const TaskOfRanks loaded(options.task, settings.heads == 1 ? Sharing::queries : Sharing::none, threads);
  if (!ranks().first()) {
    TaskMember member(loaded.part(), threads);
    ranks().help([&](const std::string& job) { return member.answer(job); },
                 [&](std::string own, std::string_view next) { return member.merged(std::move(own), next); });
    return kDone;
  }
  require_other_file(options.out, options.task);
  const SharedTask& shared = loaded.task();
  const AttentionTask& task = *shared.part;
  if (settings.batch >= shared.queries && !task.next_token()) settings.batch = 0;  // all of them: no minibatches
  if (options.record.empty()) settings.record = usual_records(task, settings);
  Start start;
  const bool starts_elsewhere = !options.init.empty() && options.init != "zero" && options.init != "random";
  if (starts_elsewhere) {
    require_other_file(options.out, options.init);
    start = internal::load_start(options.init, settings, threads);
  }
  const Stopwatch watch;
  ProgressLine line(session);
  Checkpoints checkpoints(options.checkpoint);
  Trainer* trainer_now = nullptr;
  RunFile* file_now = nullptr;
  settings.progress = [&](const TrainProgress& progress) {
    checkpoints.offer(*trainer_now, *file_now);
    line.show(static_cast<double>(progress.step) / static_cast<double>(settings.steps), [&] {
      return fmt::format("{:.1f} s, step {} of {}, loss {:.6g}, norm {:.6g}", watch.seconds(), progress.step,
                         settings.steps, progress.loss(), progress.norm());
    });
    return Session::interrupted();
  };
  Trainer trainer = with_place(starts_elsewhere ? options.init : options.task,
                               [&] { return Trainer(shared, settings, threads, start); });
  RunFile file(options.out, shared, settings, trainer, {.replace = session.force, .resume = options.resume});
  trainer_now = &trainer;
  file_now = &file;
  const Index resumed_from = resume(file, trainer);
  if (options.resume && resumed_from < 0) {
    session.warn(fmt::format("{}: no interrupted run to resume; this one starts at step 0", options.out));
  }
  if (settings.ridge != 0 && settings.param != Parametrization::KQ)
    session.warn("--ridge has no effect: it acts on K and Q, and this run trains neither");
  if (settings.epsilon.value_or(0) > 0 && !facts_of(settings.optimizer).epsilon)
    session.warn(fmt::format("--epsilon has no effect with --optimizer {}", options.optimizer));
  Session::watch_interrupts();
  const TrainStop stop = train_into(file, trainer);
  TrainedRun result = trainer.result();
  result.stop = stop;
  const AttentionMap map = attention_map(shared, result.W, threads);
  const Inference inference{mean_entropy(shared, result.W, threads),
                            hard_selection(shared, result.head, settings.loss, map)};
  const double seconds = watch.seconds();
  line.clear();
  file.finish(result, map, stop == TrainStop::asked, threads);
  warn_of_end(session, result, options);
  if (session.json) {
    Session::print_json("train", seconds, to_json(result, map, options, resumed_from, inference, threads.count()));
  } else {
    print_table(result, map, options, inference, seconds);
  }
  if (stop == TrainStop::asked) return Session::interrupted() ? kInterrupted : kLimit;
  return stop == TrainStop::overflow ? kLimit : kDone;
}

}  // namespace

void add_train(CLI::App& program, Session& session) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = session.add_verb(program, "train", "Train softmax attention by gradient descent", R"(Examples:
  attsvm generate random --seed 1 -o task.npz
  attsvm train task.npz -o run.npz                        W by normalized gradient descent, 2000 steps
  attsvm train task.npz --param KQ --record every:100 -o kq.npz
                                                          W = K Q', with every 100th step recorded
  attsvm train task.npz --optimizer mirror:3 --normalize -o mirror.npz
  attsvm train task.npz --optimizer steepest:spec -o spec.npz
                                                          leads to the SVM of least spectral norm
  attsvm train task.npz --optimizer adam --betas 0.9,0.999 --epsilon 0 -o adam.npz
  attsvm train task.npz --heads 4 -o heads.npz            four heads, whose outputs add up
  attsvm train task.npz --steps 100000000 --time-limit 60 -o long.npz
  attsvm train task.npz --steps 100000000 --time-limit 60 -o long.npz --resume
                                                          continue where it stopped
  attsvm train task.npz --selector gumbel --entropy 0.01 --temperature 1:0.1 -o router.npz
                                                          hard selections, drawn ever closer to the largest logit
  attsvm train task.npz --arithmetic plain --epsilon 2.2e-16 -o plain.npz
                                                          rounding noise as in deep-learning frameworks
The file holds the weights, the attention and the recorded points (docs/formats.md).
Exit codes: 0 done, 4 stopped by the time limit or by overflow, 130 interrupted)",
                                    [&session, options] { return run_train(session, *options); });
  TrainSettings& s = options->settings;
  const CLI::Validator positive = positive_number();
  verb->add_option("TASK", options->task, "Task file, or folder of shards")->required();
  Session::add_output(verb, options->out, session.force)->required();
  add_param(verb, s.param);
  verb->add_flag("--joint", s.joint, "Also train the head's v");
  verb->add_option(
          "--heads", s.heads,
          "Heads of attention, whose outputs add up: each with a W and a v, the rows of the task's head first, "
          "then drawn ones (default: 1)")
      ->check(CLI::Range(Index{1}, Index{1} << 20));
  verb->add_flag("--shared-norm", s.shared_norm,
                 "Many heads: divide steps by one norm over all heads, instead of one per head");
  verb->add_option("--width", s.width, "Columns of K and Q (default: min(d,dz))")
      ->check(CLI::Range(Index{1}, Index{1} << 40));
  verb->add_option(
          "--optimizer", options->optimizer,
          "How a step is made from the gradient; NORM is fro, nuc, spec, max, l1, lp:P or schatten:P (default: ngd)")
      ->type_name(kOptimizerForms);
  verb->add_option("--momentum", s.momentum,
                   "B: steps use the average m = B m + (1-B) g of gradients instead of g; for gd, ngd and steepest "
                   "(default: 0), signum (default: 0.9) and muon (default: 0.95)");
  verb->add_option("--betas", options->betas,
                   "B1,B2 of adam and adamw (default: 0.9,0.999) and of lion (default: 0.9,0.99)");
  verb->add_option("--newton-schulz", s.newton_schulz,
                   "Muon: approximate U V' by K Newton-Schulz iterations, as in practice (default: U V' itself)")
      ->check(CLI::Range(Index{1}, Index{1000}));
  verb->add_flag("--normalize", s.normalize, "Mirror descent: divide the gradient by its norm");
  verb->add_option("--step", s.step, "Size of a step (default: 0.1)")->check(positive);
  verb->add_option("--steps", s.steps, "Number of steps (default: 2000)")->check(CLI::Range(Index{0}, Index{1} << 52));
  add_choice(verb, "--schedule", s.schedule,
             "How the step changes: constant, as 1/sqrt(k), or along a cosine to 0 (default: constant)");
  verb->add_option(
      "--epsilon", options->epsilon,
      "E or E,E_HEAD, added to the gradient's dual norm; for adam and adamw to the root of the second moment "
      "(default: 0; for adam and adamw 1e-8)");
  verb->add_option("--ridge", s.ridge, "Weight of |K|^2 + |Q|^2 added to the loss (default: 0)");
  verb->add_option("--weight-decay", s.weight_decay,
                   "Shrink the weights by this times the step in every step (default: 0; for adamw 0.01)");
  verb->add_option("--dropout", s.dropout, "Probability of dropping an attention weight (default: 0)");
  verb->add_option("--batch", s.batch, "Queries per step (default, and from the number of queries on: all)")
      ->check(CLI::Range(Index{1}, Index{1} << 40));
  add_loss(verb, s.loss);
  verb->add_option(
      "--label-smoothing", s.label_smoothing,
      "Logistic loss: count the other label with half of this, the query's own with the rest (default: 0)");
  add_selector(verb, s, options->temperature);
  add_choice(verb, "--arithmetic", s.arithmetic,
             "Gradients that stay exact at saturation, or as frameworks compute them (default: exact)");
  verb->add_option("--init", options->init,
                   "zero, random, or a file: W0, K0, Q0, v0, or a run (default: zero; for KQ random)");
  verb->add_option("--seed", s.seed, "Seed of the start, minibatches, dropout and selectors (default: 0)");
  verb->add_option("--record", options->record,
                   "Steps to record, such as 0,1,10 or every:K (default: about 100 from the first to the last, closer "
                   "together at the beginning)");
  verb->add_option("--stop-direction", s.stop_direction,
                   "Stop once the direction of W changes by less than this while the number of steps doubles")
      ->check(positive);
  verb->add_option("--time-limit", options->settings.time_limit,
                   "Seconds after which the run stops; --resume continues it")
      ->check(positive);
  verb->add_option("--checkpoint", options->checkpoint, "Seconds between saved states (default: 5)")->check(positive);
  verb->add_flag("--resume", options->resume, "Continue a run that was interrupted or killed");
}

}  // namespace attsvm::internal
