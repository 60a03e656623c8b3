#include "attsvm/positions.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/refuse.h"
#include "io/output.h"
#include "options.h"

namespace attsvm::internal {
namespace {

struct PositionOptions {
  std::string task, table, out;
  Positions positions;
  std::optional<double> fixed_slope;
};

ExitCode run_positions(const Session& session, PositionOptions& options, bool has_kind) {
  Positions& positions = options.positions;
  const int chosen = has_kind + !options.table.empty() + options.fixed_slope.has_value();
  if (chosen == 0)
    throw InputError(
        "give --kind (sinusoidal, rotary, bias, slope or relative), --table FILE.npy or --fixed-slope NUMBER");
  if (chosen > 1) throw InputError("--kind, --table and --fixed-slope exclude each other: each is a kind of its own");
  if (options.fixed_slope) {
    positions.kind = PositionKind::fixed_slope;
    positions.slope = *options.fixed_slope;
  }
  if (!options.table.empty()) {
    positions.kind = PositionKind::table;
    positions.table = read_npy(options.table);
    require_other_file(options.out, options.table);
  }
  require_writable(options.out, session.force);
  require_other_file(options.out, options.task);
  Threads threads(session.threads);
  const AttentionTask task = load_task(options.task, threads);
  const Stopwatch watch;
  const AttentionTask placed =
      with_place(options.table.empty() ? options.task : options.table, [&] { return with_positions(task, positions); });
  const double seconds = watch.seconds();
  const bool apart = of_distances(positions.kind), waves = !apart && positions.kind != PositionKind::table;
  const DistanceRange range = apart ? distance_range(task) : DistanceRange{0, 0};
  save_task(options.out, placed, {}, session.force);
  if (session.json) {
    Session::print_json("positions", seconds,
                        {{"task", options.task},
                         {"file", options.out},
                         {"kind", name_of(positions.kind)},
                         {"base", waves ? Json(positions.base) : Json()},
                         {"slope", options.fixed_slope ? Json(*options.fixed_slope) : Json()},
                         {"distances", apart ? Json({range.least, range.largest}) : Json()},
                         {"table", options.table.empty() ? Json() : Json(options.table)},
                         {"tokens", placed.tokens()},
                         {"longest", placed.longest()},
                         {"d", placed.key_size()},
                         {"attention", name_of(placed.kind())},
                         {"threads", threads.count()}});
  } else {
    fmt::print("{}: {} with {} in the {}\n", printable(options.out), counted(placed.tokens(), "token"),
               apart ? fmt::format("distances {} to {} ({})", range.least, range.largest, name_of(positions.kind))
                     : fmt::format("{} positions", name_of(positions.kind)),
               options.fixed_slope ? "logits" : "keys");
  }
  if (!apart && placed.kind() != AttentionKind::self)
    session.warn(
        fmt::format("queries of {} attention are no tokens and stay without positions", name_of(placed.kind())));
  return kDone;
}

}  // namespace

void add_positions(CLI::App& program, Session& session) {
  auto options = std::make_shared<PositionOptions>();
  auto kind = std::make_shared<CLI::Option*>(nullptr);
  CLI::App* verb =
      session.add_verb(program, "positions", "Put positions into the keys of a task", R"(Examples:
  attsvm positions task.npz --kind sinusoidal -o placed.npz      adds waves, as the first transformers did
  attsvm positions task.npz --kind rotary -o placed.npz          turns pairs of coordinates, as LLaMA does
  attsvm positions task.npz --table learned.npy -o placed.npz    adds row t of a table to the key of token t
  attsvm positions task.npz --kind bias -o placed.npz            logits x'Wz + b[distance], one b per distance
  attsvm positions task.npz --fixed-slope 0.5 -o placed.npz      logits x'Wz - 0.5 distance, as ALiBi has
  attsvm solve placed.npz -o solution.npz                        every other verb takes the result
Equal tokens cannot be told apart without positions: a selection that keeps one and drops the other has no W.
bias, slope and relative speak of the distance from a token back to the query's own, and so does --fixed-slope, whose
numbers go into the array bias of the task. With bias and slope the unknown is
one vector: W row by row, then the biases from the least distance up, or the slope; with relative it is W with rows for
distances and a column for the constant 1. Every query then has a sequence of its own, up to the last token it sees.
Values stay as they are. Queries that are tokens (self attention) get their token's position, others none.
Arrays whose names begin with x_ are left out: what they say of the task need not hold any more.)",
                       [&session, options, kind] { return run_positions(session, *options, (*kind)->count() > 0); });
  verb->add_option("TASK", options->task, "Task file (.npz)")->required();
  *kind = verb->add_option("--kind", options->positions.kind, "Which encoding")
              ->transform(one_of<PositionKind>({{"sinusoidal", PositionKind::sinusoidal},
                                                {"rotary", PositionKind::rotary},
                                                {"bias", PositionKind::bias},
                                                {"slope", PositionKind::slope},
                                                {"relative", PositionKind::relative}}));
  verb->add_option("--base", options->positions.base,
                   "Pair i turns base^(2i/d) times slower than pair 0 (default: 10000)");
  verb->add_option("--table", options->table, "Vectors to add, one per position, (P,d) with P >= T (.npy)");
  verb->add_option(
      "--fixed-slope", options->fixed_slope,
      "Take this times the distance off the logits: a slope that is given, not trained as that of --kind slope");
  Session::add_output(verb, options->out, session.force)->required();
}

}  // namespace attsvm::internal
