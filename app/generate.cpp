#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/nearest.h"
#include "base/refuse.h"
#include "io/file.h"
#include "io/output.h"
#include "options.h"
#include "session.h"

namespace attsvm::internal {
namespace {

struct GenerateOptions {
  std::string kind, text, out;
  Corpus corpus;
  Recipe recipe;  // options given on the command line replace the kind's values
  std::uint64_t seed = 0;
  std::uint32_t instance = 0;
};

constexpr const char* kCorpus = "corpus";

const RecipeKind& find_kind(const std::string& name) {
  for (const RecipeKind& kind : recipe_kinds()) {
    if (kind.name == name) return kind;
  }
  std::vector<std::string> known;
  for (const RecipeKind& kind : recipe_kinds()) known.emplace_back(kind.name);
  known.emplace_back(kCorpus);
  throw InputError(fmt::format("unknown kind '{}'; {}", name, suggestion(name, known)));
}

std::string kind_list() {
  std::string text = "Kinds:\n";
  for (const RecipeKind& kind : recipe_kinds()) text += fmt::format("  {:<14} {}\n", kind.name, kind.summary);
  text += fmt::format("  {:<14} {}\n", kCorpus, "next-token prediction from a text FILE: windows of T tokens");
  return text + R"(
Default sizes are n = 6, T = 8, d = 10, dz = d. The same options and seed give the same bytes everywhere;
--instance K draws task number K of the seed without drawing those before it.

Examples:
  attsvm generate random --n 6 --T 8 --d 10 --seed 1 -o task.npz
  attsvm generate causal --n 2 --T 16 --d 8 -o causal.npz
  attsvm generate planted --norm nuc --rank 2 --n 20 --d 12 -o planted.npz
  attsvm generate relu --attention self --shortest 3 -o self_relu.npz
  attsvm generate corpus book.txt --tokens word --T 16 --stride 1 -o corpus.npz)";
}

/// `generate corpus FILE`.
ExitCode generate_corpus(const Session& session, GenerateOptions& options,
                         const std::map<std::string, CLI::Option*>& given) {
  if (options.text.empty()) throw InputError("FILE is missing; corpus needs the text to read");
  for (const auto& [name, option] : given) {
    if (option->count() > 0 && name != "--T" && name != "--d" && name != "--tokens" && name != "--stride")
      throw InputError(
          fmt::format("{} has no meaning for corpus, which takes --tokens, --T, --stride, --d and --seed", name));
  }
  if (options.instance != 0) throw InputError("--instance has no meaning for corpus, which draws embeddings alone");
  Corpus& corpus = options.corpus;
  if (given.at("--T")->count() > 0) corpus.T = options.recipe.T;
  if (given.at("--d")->count() > 0) corpus.d = options.recipe.d;
  corpus.seed = options.seed;
  require_writable(options.out, session.force);
  require_other_file(options.out, options.text);
  const Stopwatch watch;
  const AttentionTask task = with_place(options.text, [&] {
    const auto file = InputFile::open(options.text);
    const Bytes bytes = file->bytes();
    return corpus_task({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, corpus);
  });
  const double seconds = watch.seconds();
  save_task(options.out, task, {}, session.force);
  if (session.json) {
    Session::print_json("generate", seconds,
                        {{"kind", options.kind},
                         {"text", options.text},
                         {"seed", options.seed},
                         {"file", options.out},
                         {"tokens", name_of(corpus.tokens)},
                         {"stride", corpus.stride == 0 ? corpus.T : corpus.stride},
                         {"sequences", task.sequences()},
                         {"ids", task.tokens()},
                         {"longest", task.longest()},
                         {"vocabulary", task.vocabulary_size()},
                         {"d", task.key_size()},
                         {"attention", name_of(task.kind())},
                         {"threads", Threads(session.threads).count()}});
  } else {
    fmt::print("{}: next-token prediction, {} of {}, {} {}s, d = {} (seed {})\n", printable(options.out),
               counted(task.sequences(), "sequence"), counted(task.longest(), "token"), task.vocabulary_size(),
               name_of(corpus.tokens), task.key_size(), options.seed);
  }
  return kDone;
}

}  // namespace

void add_generate(CLI::App& program, Session& session) {
  auto options = std::make_shared<GenerateOptions>();
  const auto given = std::make_shared<std::map<std::string, CLI::Option*>>();
  CLI::App* verb = session.add_verb(
      program, "generate", "Draw a task and write it to a file", kind_list(), [&session, options, given] {
        if (options->kind == kCorpus) return generate_corpus(session, *options, *given);
        if (!options->text.empty())
          throw InputError(
              fmt::format("FILE {} has no meaning for {}; only {} reads one", options->text, options->kind, kCorpus));
        const auto is_given = [&](const char* name) { return given->at(name)->count() > 0; };
        for (const char* name : {"--tokens", "--stride"}) {
          if (is_given(name))
            throw InputError(fmt::format("{} has no meaning for {}; {} has it", name, options->kind, kCorpus));
        }
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
        if (is_given("--vocabulary")) recipe.vocabulary = asked.vocabulary;
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
                               {"vocabulary", recipe.vocabulary},
                               {"C", recipe.c},
                               {"threads", Threads(session.threads).count()},
                               {"extras", extras}});
        } else {
          fmt::print("{}: {} attention, {}, {} of up to {}, d = {}, dz = {} ({}, seed {})\n", printable(options->out),
                     name_of(task.kind()), counted(task.queries(), "query"), counted(task.sequences(), "sequence"),
                     counted(task.longest(), "token"), task.key_size(), task.query_size(), options->kind,
                     options->seed);
        }
        return kDone;
      });
  const auto keep = [&](CLI::Option* option) { (*given)["--" + option->get_lnames().front()] = option; };
  verb->add_option("KIND", options->kind, "Kind of task to draw, see below")->required();
  verb->add_option("FILE", options->text, "Text of 'corpus'");
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
  keep(verb->add_option("--vocabulary", r.vocabulary, "Tokens of the vocabulary of 'nexttoken' (default: 6)")
           ->check(whole));
  keep(verb->add_option("--C", r.c, "Score of the first input of 'losses' (default: 1)"));
  keep(verb->add_option("--tokens", options->corpus.tokens, "What a corpus is cut into (default: word)")
           ->transform(one_of<TokenKind>({{"byte", TokenKind::byte}, {"word", TokenKind::word}})));
  keep(verb->add_option("--stride", options->corpus.stride,
                        "Tokens from the beginning of a sequence of a corpus to that of the next one (default: T)")
           ->check(whole));
  verb->add_option("--seed", options->seed, "Seed (default: 0)");
  verb->add_option("--instance", options->instance, "Number of the draw within the seed (default: 0)");
  Session::add_output(verb, options->out, session.force)->required();
}

}  // namespace attsvm::internal
