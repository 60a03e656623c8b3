#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/refuse.h"
#include "io/output.h"
#include "io/shards.h"
#include "options.h"

namespace attsvm::internal {
namespace {

struct SplitOptions {
  std::string task, out;
  Index parts = 0;
  bool list = false;
};

Json shards_json(const Manifest& manifest) {
  Json list = Json::array();
  for (const Manifest::Shard& shard : manifest.shards)
    list.push_back({{"file", shard.file},
                    {"bytes", shard.bytes},
                    {"queries", shard.queries},
                    {"sequences", shard.sequences},
                    {"tokens", shard.tokens}});
  return list;
}

ExitCode run_split(const Session& session, const SplitOptions& options) {
  const std::string& folder = options.list ? options.task : options.out;
  if (options.list && (options.parts > 0 || !options.out.empty()))
    throw InputError("--list makes a manifest of the files that TASK has; --parts and -o have no meaning then");
  if (!options.list && (options.parts == 0 || options.out.empty()))
    throw InputError("give --parts and -o, or --list for a folder whose files are the shards already");
  Threads threads(session.threads);
  const Stopwatch watch;
  Manifest manifest;
  if (options.list) {
    manifest = list_shards(folder, session.force, threads);
  } else {
    const AttentionTask task = load_task(options.task, threads);
    manifest = write_shards(task, options.task, options.parts, folder, session.force);
  }
  if (session.json) {
    Session::print_json("split", watch.seconds(),
                        {{"task", options.task},
                         {"folder", folder},
                         {"parts", manifest.shards.size()},
                         {"queries", manifest.all(&Manifest::Shard::queries)},
                         {"shards", shards_json(manifest)},
                         {"fingerprint", manifest.fingerprint},
                         {"seed", nullptr},
                         {"threads", threads.count()}});
    return kDone;
  }
  const auto [least, most] = std::minmax_element(manifest.shards.begin(), manifest.shards.end(),
                                                 [](const auto& a, const auto& b) { return a.queries < b.queries; });
  fmt::print("{}: {} of {} to {} queries, {} in all\n", printable(folder),
             counted(static_cast<Index>(manifest.shards.size()), "shard"), least->queries, most->queries,
             manifest.all(&Manifest::Shard::queries));
  return kDone;
}

}  // namespace

void add_split(CLI::App& program, Session& session) {
  auto options = std::make_shared<SplitOptions>();
  CLI::App* verb = session.add_verb(program, "split", "Put a task into several files, one per rank of a job",
                                    R"(Examples:
  attsvm split task.npz --parts 4 -o shards       four task files and a manifest, shards.json
  mpirun -n 4 attsvm train shards -o run.npz      every rank reads one of them
  attsvm split folder --list                      the manifest of task files that others wrote
A shard has whole sequences, with the queries that read them. With --list, the shards are the files *.npz of the folder,
in the order of their names. Every verb takes the folder as a task.)",
                                    [&session, options] { return run_split(session, *options); });
  verb->add_option("TASK", options->task, "Task file; with --list, the folder of the shards")->required();
  verb->add_option("--parts", options->parts, "Number of shards")->check(CLI::Range(Index{1}, Index{1} << 20));
  verb->add_flag("--list", options->list, "Write only the manifest of the task files that are there");
  Session::add_output(verb, options->out, session.force);
}

}  // namespace attsvm::internal
