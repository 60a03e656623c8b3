#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/nearest.h"
#include "io/output.h"
#include "options.h"
#include "session.h"

namespace attsvm::internal {
namespace {

struct GenerateOptions {
  std::string kind, out;
  Recipe recipe;  // options given on the command line replace the kind's values
  std::uint64_t seed = 0;
  std::uint32_t instance = 0;
};

const RecipeKind& find_kind(const std::string& name) {
  for (const RecipeKind& kind : recipe_kinds()) {
    if (kind.name == name) return kind;
  }
  std::vector<std::string> known;
  for (const RecipeKind& kind : recipe_kinds()) known.emplace_back(kind.name);
  throw InputError(fmt::format("unknown kind '{}'; {}", name, suggestion(name, known)));
}

std::string kind_list() {
  std::string text = "Kinds:\n";
  for (const RecipeKind& kind : recipe_kinds()) text += fmt::format("  {:<14} {}\n", kind.name, kind.summary);
  return text + R"(
Default sizes are n = 6, T = 8, d = 10, dz = d. The same options and seed give the same bytes everywhere;
--instance K draws task number K of the seed without drawing those before it.

Examples:
  attsvm generate random --n 6 --T 8 --d 10 --seed 1 -o task.npz
  attsvm generate causal --n 2 --T 16 --d 8 -o causal.npz
  attsvm generate planted --norm nuc --rank 2 --n 20 --d 12 -o planted.npz
  attsvm generate relu --attention self --shortest 3 -o self_relu.npz)";
}

}  // namespace

void add_generate(CLI::App& program, Session& session) {
  auto options = std::make_shared<GenerateOptions>();
  const auto given = std::make_shared<std::map<std::string, CLI::Option*>>();
  CLI::App* verb = session.add_verb(
      program, "generate", "Draw a task and write it to a file", kind_list(), [&session, options, given] {
        const auto is_given = [&](const char* name) { return given->at(name)->count() > 0; };
        Recipe recipe = find_kind(options->kind).recipe;
        const Recipe& asked = options->recipe;
        if (is_given("--n")) recipe.n = asked.n;
        if (is_given("--T")) recipe.T = asked.T;
        if (is_given("--d")) recipe.d = asked.d;
        if (is_given("--dz")) recipe.dz = asked.dz;
        if (is_given("--shortest")) recipe.shortest = asked.shortest;
        if (is_given("--attention")) recipe.pattern = asked.pattern;
        if (is_given("--head")) recipe.head = asked.head;
        if (is_given("--hidden")) recipe.hidden = asked.hidden;
        if (is_given("--lambda")) recipe.lambda = asked.lambda;
        if (is_given("--rank")) recipe.rank = asked.rank;
        if (is_given("--norm")) recipe.norm = asked.norm;
        if (is_given("--C")) recipe.c = asked.c;

        require_writable(options->out, session.force);
        const Stopwatch watch;
        const Drawn drawn = generate(recipe, options->seed, options->instance);
        const double seconds = watch.seconds();
        save_task(options->out, drawn.task, drawn.extras, session.force);
        const AttentionTask& task = drawn.task;
        if (session.json) {
          Json extras = Json::array();
          for (const auto& [name, array] : drawn.extras) extras.push_back(name);
          Session::print_json("generate", seconds,
                              {{"kind", options->kind},
                               {"seed", options->seed},
                               {"instance", options->instance},
                               {"file", options->out},
                               {"sequences", task.sequences()},
                               {"queries", task.queries()},
                               {"longest", task.longest()},
                               {"d", task.key_size()},
                               {"dz", task.query_size()},
                               {"attention", name_of(task.kind())},
                               {"causal", task.causal()},
                               {"shortest", recipe.shortest},
                               {"head", name_of(task.head().kind)},
                               {"hidden", recipe.hidden},
                               {"lambda", recipe.lambda},
                               {"rank", recipe.rank},
                               {"norm", recipe.norm == PlantedNorm::nuclear ? "nuc" : "fro"},
                               {"C", recipe.c},
                               {"threads", Threads(session.threads).count()},
                               {"extras", extras}});
        } else {
          fmt::print("{}: {} attention, {}, {} of up to {}, d = {}, dz = {} ({}, seed {})\n", options->out,
                     name_of(task.kind()), counted(task.queries(), "query"), counted(task.sequences(), "sequence"),
                     counted(task.longest(), "token"), task.key_size(), task.query_size(), options->kind,
                     options->seed);
        }
        return kDone;
      });
  const auto keep = [&](CLI::Option* option) { (*given)["--" + option->get_lnames().front()] = option; };
  verb->add_option("KIND", options->kind, "Kind of task to draw, see below")->required();
  Recipe& r = options->recipe;
  const auto whole = CLI::Range(Index{1}, Index{1} << 40);
  keep(verb->add_option("--n", r.n, "Number of sequences")->check(whole));
  keep(verb->add_option("--T", r.T, "Tokens per sequence")->check(whole));
  keep(verb->add_option("--d", r.d, "Dimension of a token")->check(whole));
  keep(verb->add_option("--dz", r.dz, "Dimension of a query in cross attention (default: d)")->check(whole));
  keep(verb->add_option("--shortest", r.shortest, "Draw sequence lengths between this and T (default: all T)")
           ->check(whole));
  keep(verb->add_option("--attention", r.pattern, "Where queries come from")
           ->transform(one_of<QueryPattern>({{"cross", QueryPattern::cross},
                                             {"self", QueryPattern::self},
                                             {"prompt", QueryPattern::prompt},
                                             {"causal", QueryPattern::causal}})));
  keep(verb->add_option("--head", r.head, "Head of the random kinds")
           ->transform(one_of<HeadKind>({{"linear", HeadKind::linear},
                                         {"relu", HeadKind::hidden},
                                         {"quadratic", HeadKind::quadratic},
                                         {"none", HeadKind::none}})));
  keep(verb->add_option("--hidden", r.hidden, "Hidden units of a ReLU head (default: d)")->check(whole));
  keep(verb->add_option("--lambda", r.lambda, "lambda of a quadratic head (default: 0.5)"));
  keep(verb->add_option("--rank", r.rank, "Rank of W0 (separable) or of the planted W")->check(whole));
  keep(verb->add_option("--norm", r.norm, "Norm whose optimum is planted (default: fro)")
           ->transform(one_of<PlantedNorm>({{"fro", PlantedNorm::frobenius}, {"nuc", PlantedNorm::nuclear}})));
  keep(verb->add_option("--C", r.c, "Score of the first input of 'losses' (default: 1)"));
  verb->add_option("--seed", options->seed, "Seed (default: 0)");
  verb->add_option("--instance", options->instance, "Number of the draw within the seed (default: 0)");
  Session::add_output(verb, options->out, session.force)->required();
}

}  // namespace attsvm::internal
