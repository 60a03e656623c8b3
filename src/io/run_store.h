#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace attsvm::internal {

using Json = nlohmann::ordered_json;

/// The result of one instance.
struct RunRow {  // NOLINT(bugprone-exception-escape): Json declares its move noexcept, and catches what it throws
  std::string rejection;  ///< why the draw was rejected; empty: accepted
  Json result;            ///< an object of named numbers and arrays

  static RunRow rejected(std::string why) { return {std::move(why), Json::object()}; }

  bool accepted() const { return rejection.empty(); }
};

/// Identifies a set of runs. Rows of different keys never mix.
struct RunKey {
  std::string experiment, settings, version;  ///< settings: JSON text
  std::uint64_t seed = 0;

  bool operator==(const RunKey&) const = default;
};

/// Runs that are done, in one SQLite file. A commit is stored completely or not at all, however the process ends. The
/// file is locked until the store is closed. InputError names the file and the reason: in use, not writable,
/// disk full, not a run store.
class RunStore {
 public:
  /// `instead` completes errors with what else the user can do.
  explicit RunStore(std::string path, std::string instead = "give another folder with --out");
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  /// The set of runs with this key; created if it is new.
  std::int64_t find(const RunKey& key);
  /// The keys of all sets.
  std::vector<RunKey> keys();
  /// Instances 0, 1, … of a set, up to the first that is missing.
  std::vector<RunRow> rows(std::int64_t set);
  /// All instances of a set.
  std::map<std::int64_t, RunRow> instances(std::int64_t set);
  /// Adds instances first, first+1, …
  void commit(std::int64_t set, std::uint32_t first, std::span<const RunRow> rows);
  /// Deletes the runs of a set.
  void forget(std::int64_t set);

 private:
  struct Statement;
  [[noreturn]] void fail(int code) const;
  void execute(const char* sql);
  void set_up();
  /// Calls take(instance, row) for the instances of a set, in order, until it returns false.
  void read(std::int64_t set, const std::function<bool(std::int64_t, RunRow)>& take);

  std::string path_, instead_;
  sqlite3* database_ = nullptr;
};

}  // namespace attsvm::internal
