#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "study/study.h"

struct sqlite3;
struct sqlite3_stmt;

namespace attsvm::internal {

/// Identifies a set of runs. Rows of different keys never mix.
struct RunKey {
  std::string experiment, settings, version;  ///< settings: JSON text
  std::uint64_t seed = 0;
};

/// The runs of a folder, in one SQLite file. A commit is stored completely or not at all, however the process ends. The
/// file is locked until the store is closed. InputError names the file and the reason: in use, not writable,
/// disk full, not a run store.
class RunStore {
 public:
  explicit RunStore(std::string path);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  /// The set of runs with this key; created if it is new.
  std::int64_t find(const RunKey& key);
  /// Instances 0, 1, … of a set, up to the first that is missing.
  std::vector<StudyRow> rows(std::int64_t set);
  /// Adds instances first, first+1, …
  void commit(std::int64_t set, std::uint32_t first, std::span<const StudyRow> rows);
  /// Deletes the runs of a set.
  void forget(std::int64_t set);

 private:
  struct Statement;
  [[noreturn]] void fail(int code) const;
  void execute(const char* sql);
  void set_up();

  std::string path_;
  sqlite3* database_ = nullptr;
};

}  // namespace attsvm::internal
