#include "task_of_ranks.h"

#include "ranks/ranks.h"
#include "train/lane_runs.h"

namespace attsvm::internal {
namespace {

/// The first of the shards that a rank has: all have as many, or one more.
std::size_t first_shard(const Manifest& manifest, int rank) {
  const auto shards = manifest.shards.size(), ranks = static_cast<std::size_t>(internal::ranks().count());
  const auto at = static_cast<std::size_t>(rank);
  return shards <= ranks ? std::min(at, shards) : (shards * at + ranks - 1) / ranks;
}

/// Tasks that lanes may take are trained in lanes, by one rank: shared, they would have other bits.
bool beyond_lanes(const Manifest& manifest) {
  return manifest.all(&Manifest::Shard::weights) * manifest.key_size > kMostLaneNumbers;
}

bool suits(const Manifest& manifest, TaskOfRanks::Sharing sharing) {
  if (sharing == TaskOfRanks::Sharing::queries) return beyond_lanes(manifest);
  const Index queries = manifest.all(&Manifest::Shard::queries);
  for (int rank = 0; rank < ranks().count(); ++rank) {
    const auto before = [&](int at) { return manifest.before(first_shard(manifest, at), &Manifest::Shard::queries); };
    if (!SharedRows::fit(queries, before(rank), before(rank + 1))) return false;
  }
  return true;
}

}  // namespace

TaskOfRanks::TaskOfRanks(const std::string& path, Sharing sharing, Threads& threads) {
  const std::string file = manifest_of(path);
  if (ranks().count() > 1 && sharing != Sharing::none && !file.empty()) {
    const Manifest manifest = read_manifest(file);
    if (suits(manifest, sharing)) {
      ranks().share_among(std::min(ranks().count(), static_cast<int>(manifest.shards.size())));
      const std::size_t begin = first_shard(manifest, ranks().rank()), end = first_shard(manifest, ranks().rank() + 1);
      if (begin == end) return;  // more ranks than shards
      part_.emplace(load_shards(manifest, begin, end, threads));
      task_.emplace(*part_);
      task_->first = manifest.before(begin, &Manifest::Shard::queries);
      task_->queries = manifest.all(&Manifest::Shard::queries);
      task_->longest = manifest.longest;
      task_->first_weight = static_cast<std::uint64_t>(manifest.before(begin, &Manifest::Shard::weights));
      task_->weights = static_cast<std::uint64_t>(manifest.all(&Manifest::Shard::weights));
      task_->fingerprint = manifest.fingerprint;
      task_->ask = [](const std::string& job, const std::function<void()>& own) { return ranks().ask(job, own); };
      // Ends the job where a shard is wrong.
      ranks().together({}, [](std::string own, std::string_view /*next*/) { return own; });
      return;
    }
  }
  if (!ranks().first()) return;
  part_.emplace(load_task(path, threads));
  task_.emplace(*part_);
}

SharedRows TaskOfRanks::rows() const {
  return {.first = task_->first,
          .queries = task_->queries,
          .together = [](std::string own, const SharedRows::Merge& merge, const SharedRows::Finish& finish) {
            return ranks().together(std::move(own), merge, finish);
          }};
}

}  // namespace attsvm::internal
