#pragma once

#include <string>
#include <vector>

#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm::internal {

/// A task in several files, its shards: task files of their own, which hold its sequences and queries one after another
/// (task/parts.h). A manifest beside them says what they are (docs/formats.md).
struct Manifest {
  struct Shard {
    std::string file;            ///< beside the manifest
    Index bytes = 0, crc32 = 0;  ///< of the file
    Index queries = 0, sequences = 0, tokens = 0;
    Index weights = 0;  ///< tokens that its queries see, added up
    Index longest = 0;  ///< T of the shard
  };

  std::string folder;  ///< where the shards are
  std::string kind;    ///< of attention
  Index key_size = 0, value_size = 0, query_size = 0;
  Index longest = 0;      ///< T of the whole task
  Index fingerprint = 0;  ///< fingerprint_of() the whole task
  std::vector<Shard> shards;

  /// Of all shards before `shard`; of the whole task with shards.size().
  Index before(std::size_t shard, Index Shard::*count) const;
  Index all(Index Shard::*count) const { return before(shards.size(), count); }
};

/// The manifest that this name of a task means: a folder that holds one, or the manifest itself. Empty: a task file.
std::string manifest_of(const std::string& task);

/// InputError names the file, and the entry that is wrong.
Manifest read_manifest(const std::string& path);

/// Shards `first` … `last`−1 as one task; a single one stays in its mapped file. InputError unless each has the sizes
/// and the CRC-32 that the manifest says.
AttentionTask load_shards(const Manifest& manifest, std::size_t first, std::size_t last, Threads& threads);

/// Writes the task in `count` shards, and then their manifest, to a folder, which may exist; `replace` also removes the
/// shards of a manifest that is there. InputError, before anything is written, if one of these files is there and
/// `replace` is false, or if it is `input`, the file or folder that the task was read from, or if the task cannot be
/// cut into so many.
Manifest write_shards(const AttentionTask& task, const std::string& input, Index count, const std::string& folder,
                      bool replace);

/// Writes the manifest for the task files that a folder has: its files *.npz in the order of their names. InputError as
/// for write_shards, and if they are not parts of one task.
Manifest list_shards(const std::string& folder, bool replace, Threads& threads);

}  // namespace attsvm::internal
