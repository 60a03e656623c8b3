// Training: small runs alone and many at once; one step of a large task against the limits of memory and arithmetic;
// the direction of one gradient, for the comparison with exact arithmetic.

#include <span>
#include <stdexcept>

#include "base/blas.h"
#include "base/simd.h"
#include "bench.h"
#include "measure.h"
#include "train/gradient.h"

namespace attsvm::bench {
namespace {

struct Options {
  Size size;
  std::string param = "W", arithmetic = "exact", task, start;
  double scale = 1;
  int threads = 2, rounds = 7;
  std::uint32_t count = 1000;
};

Arithmetic arithmetic_of(const Options& options) {
  return options.arithmetic == "plain" ? Arithmetic::plain : Arithmetic::exact;
}

constexpr Index kShort = 100, kLong = 500;  // steps of the two runs whose difference gives the time per step

std::vector<AttentionTask> drawn_tasks(const Options& options) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < options.count; ++k)
    tasks.push_back(generate({.n = options.size.n, .T = options.size.T, .d = options.size.d}, 1, k).task);
  return tasks;
}

std::vector<double> per_step(const Contender& brief, const Contender& lengthy, Index runs) {
  std::vector<double> seconds;
  for (std::size_t k = 0; k < brief.seconds.size(); ++k)
    seconds.push_back((lengthy.seconds[k] - brief.seconds[k]) / static_cast<double>((kLong - kShort) * runs));
  return seconds;
}

/// Time per step, from the difference of a long and a short run, so that preparation does not count.
void run_small(const Options& options) {
  const std::vector<AttentionTask> tasks = drawn_tasks(options);
  Threads threads(options.threads);
  const auto settings = [&](Index steps) {
    return TrainSettings{.param = options.param == "KQ" ? Parametrization::KQ : Parametrization::W,
                         .steps = steps,
                         .arithmetic = arithmetic_of(options)};
  };
  const bool one = tasks.size() == 1;
  const Index times = one ? 10 : 1;
  const auto work = [&](Index steps) {
    return [&, steps] {
      if (one) {
        train(tasks[0], settings(times * steps), threads);
      } else {
        train_many(tasks, settings(steps), threads);
      }
    };
  };
  std::vector<Contender> runs{{"short", work(kShort)}, {"long", work(kLong)}};
  interleave(runs, options.rounds);
  emit({{"name", "steps"},
        {"param", options.param},
        {"arithmetic", options.arithmetic},
        {"threads", threads.count()},
        {"instances", options.count},
        {"seconds", per_step(runs[0], runs[1], times * std::ssize(tasks))},
        {"peak_memory", peak_memory()}});
}

/// Time per step of every optimizer, all in turn.
void run_optimizers(const Options& options) {
  const std::vector<AttentionTask> tasks = drawn_tasks(options);
  Threads threads(options.threads);
  const std::vector<std::pair<std::string, TrainSettings>> rules{
      {"ngd", {}},
      {"ngd, momentum .9", {.momentum = 0.9}},
      {"steepest:max", {.optimizer = Optimizer::steepest, .norm = Norm::largest(), .step = 0.02}},
      {"signum", {.optimizer = Optimizer::signum, .step = 0.02}},
      {"adam", {.optimizer = Optimizer::adam, .step = 0.01, .epsilon = 0.0}},
      {"steepest:spec", {.optimizer = Optimizer::steepest, .norm = Norm::spectral(), .step = 0.05}},
      {"muon", {.optimizer = Optimizer::muon, .step = 0.05}},
  };
  std::vector<Contender> runs;
  for (const auto& [name, rule] : rules) {
    for (const Index steps : {kShort, kLong}) {
      TrainSettings settings = rule;
      settings.steps = steps;
      runs.push_back({name, [&tasks, &threads, settings] { train_many(tasks, settings, threads); }});
    }
  }
  interleave(runs, options.rounds);
  for (std::size_t k = 0; k < runs.size(); k += 2)
    emit({{"name", runs[k].name},
          {"threads", threads.count()},
          {"seconds", per_step(runs[k], runs[k + 1], std::ssize(tasks))}});
}

/// One pass over a large task, and for comparison the least work of a step: reading each token once, Z Wᵀ and gᵀ Z.
void run_step(const Options& options) {
  Threads threads(options.threads);
  const AttentionTask task = load_task(options.task, threads);
  const Index n = task.queries(), d = task.key_size();
  const RowMatrix W = train(task, {.steps = 0, .init = Init::random}, threads).W;
  const SingleThreadBlas blas;
  const RowMatrix Z = RowMatrix::Constant(n, d, 0.1);
  RowMatrix U(n, d), G(d, d);
  constexpr Index kChunks = 64, kBlock = 128;
  const Index numbers = task.tokens() * d, share = numbers / kChunks;
  const double* X = task.keys(0).data();
  forget_peak_memory();
  GradientPass pass(task, {.arithmetic = arithmetic_of(options)}, threads);
  LossGradient out;
  pass.evaluate(W, task.head(), {}, out);
  const double memory = peak_memory();
  std::vector<Contender> runs{
      {"read",
       [&] {
         threads.for_each(kChunks, [&](Index chunk) {
           const std::span<const double> part(X + chunk * share, static_cast<std::size_t>(share));
           if (first_nonfinite(part) != part.size()) throw std::logic_error("tokens are finite");
         });
       }},
      {"multiply",
       [&] {
         threads.for_each((n + kBlock - 1) / kBlock, [&](Index k) {
           const Index at = k * kBlock, rows = std::min(kBlock, n - at);
           gemm(false, true, rows, d, d, 1.0, Z.row(at).data(), d, W.data(), d, 0.0, U.row(at).data(), d);
         });
         threads.for_each((d + kBlock - 1) / kBlock, [&](Index k) {
           const Index at = k * kBlock, rows = std::min(kBlock, d - at);
           gemm(true, false, rows, d, n, 1.0, U.data() + at, d, Z.data(), d, 0.0, G.row(at).data(), d);
         });
       }},
      {"step", [&] { pass.evaluate(W, task.head(), {}, out); }},
  };
  interleave(runs, options.rounds);
  emit({{"name", "step"},
        {"threads", threads.count()},
        {"seconds", runs[2].seconds},
        {"limit_read", least(runs[0].seconds)},
        {"limit_multiply", least(runs[1].seconds)},
        {"token_bytes", 8 * numbers},
        {"peak_memory", memory}});
}

void run_gradient(const Options& options) {
  Threads threads(1);
  const AttentionTask task = load_task(options.task, threads);
  const RowMatrix W = options.scale * load_start(options.start, Parametrization::W, threads).W;
  LossGradient out;
  GradientPass(task, {.arithmetic = arithmetic_of(options)}, threads).evaluate(W, task.head(), {}, out);
  const RowMatrix& G = out.W.direction;
  emit({{"name", "gradient"},
        {"log_norm", out.W.log_norm()},
        {"direction", std::vector<double>(G.data(), G.data() + G.size())}});
}

}  // namespace

void add_train(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* small = program.add_subcommand("steps", "A normalized step of random tasks, one or many at once");
  add_size_options(*small, options->size);
  small->add_option("--param", options->param)->check(CLI::IsMember({"W", "KQ"}));
  small->add_option("--count", options->count, "Tasks");
  small->callback([options] { run_small(*options); });
  CLI::App* rules = program.add_subcommand("optimizers", "A step of each optimizer, of many random tasks at once");
  add_size_options(*rules, options->size);
  rules->add_option("--count", options->count, "Tasks");
  rules->callback([options] { run_optimizers(*options); });
  CLI::App* large = program.add_subcommand("step", "A pass over a task from a file");
  large->add_option("task", options->task)->required();
  large->callback([options] { run_step(*options); });
  for (CLI::App* verb : {small, rules, large}) {
    verb->add_option("--threads", options->threads, "Threads; 0: all cores");
    verb->add_option("--rounds", options->rounds);
  }
  CLI::App* gradient = program.add_subcommand("gradient", "The direction of the gradient at a multiple of W0");
  gradient->add_option("task", options->task)->required();
  gradient->add_option("start", options->start, "File with W0")->required();
  gradient->add_option("--scale", options->scale);
  gradient->callback([options] { run_gradient(*options); });
  for (CLI::App* verb : {small, large, gradient})
    verb->add_option("--arithmetic", options->arithmetic)->check(CLI::IsMember({"exact", "plain"}));
}

}  // namespace attsvm::bench
