#include "io/run_store.h"

#include <sqlite3.h>

#include <string_view>

#include "base/refuse.h"

namespace attsvm::internal {
namespace {

constexpr int kApplication = 0x61747473;  // "atts"; file(1) and attsvm recognise run stores by it
constexpr int kLayout = 1;

constexpr const char* kTables = R"(
CREATE TABLE sets (
  id INTEGER PRIMARY KEY,
  experiment TEXT NOT NULL, settings TEXT NOT NULL, version TEXT NOT NULL, seed TEXT NOT NULL,
  UNIQUE (experiment, settings, version, seed));
CREATE TABLE runs (
  set_id INTEGER NOT NULL REFERENCES sets, instance INTEGER NOT NULL, rejection TEXT NOT NULL, result TEXT NOT NULL,
  PRIMARY KEY (set_id, instance)) WITHOUT ROWID;
)";

}  // namespace

/// A prepared statement, finalized by its destructor.
struct RunStore::Statement {
  RunStore& store;
  sqlite3_stmt* handle = nullptr;

  Statement(RunStore& owner, const char* sql) : store(owner) {
    check(sqlite3_prepare_v2(owner.database_, sql, -1, &handle, nullptr));
  }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void check(int code) const {
    if (code != SQLITE_OK) store.fail(code);
  }
  Statement& bind(int place, std::int64_t number) {
    check(sqlite3_bind_int64(handle, place, number));
    return *this;
  }
  Statement& bind(int place, std::string_view text) {  // the text must live until the step
    check(sqlite3_bind_text(handle, place, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
    return *this;
  }
  /// True: there is a row.
  bool step() {
    const int code = sqlite3_step(handle);
    if (code != SQLITE_ROW && code != SQLITE_DONE) store.fail(code);
    return code == SQLITE_ROW;
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(handle, column); }
  std::string_view text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle, column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle, column))};
  }
};

RunStore::RunStore(std::string path, std::string instead) : path_(std::move(path)), instead_(std::move(instead)) {
  const int code = sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  try {
    if (code != SQLITE_OK) fail(code);
    set_up();
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

RunStore::~RunStore() { sqlite3_close(database_); }

void RunStore::fail(int code) const {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      refuse("{}: another process is using this run store; wait for it, or {}", path_, instead_);
    case SQLITE_FULL:
      refuse("{}: cannot write: the disk is full; runs committed so far are kept", path_);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      refuse("{}: cannot write the run store: file or folder is not writable", path_);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      refuse("{}: is not a run store, or is damaged; move it away or {}", path_, instead_);
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    default:
      refuse("{}: cannot use the run store: {}", path_,
             database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_));
  }
}

void RunStore::execute(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(sqlite3_extended_errcode(database_));
}

void RunStore::set_up() {
  // Two processes that fill one store would run everything twice, so the first one locks it until it ends.
  execute("PRAGMA locking_mode = EXCLUSIVE");
  execute("PRAGMA synchronous = NORMAL");
  execute("BEGIN EXCLUSIVE");
  const auto ask = [&](const char* sql) {
    Statement statement(*this, sql);
    statement.step();
    return statement.number(0);
  };
  const bool empty = ask("SELECT count(*) FROM sqlite_schema") == 0;
  if (empty) {
    execute(kTables);
    execute(fmt::format("PRAGMA application_id = {}", kApplication).c_str());
    execute(fmt::format("PRAGMA user_version = {}", kLayout).c_str());
  } else if (ask("PRAGMA application_id") != kApplication) {
    refuse("{}: is not a run store of attsvm; move it away or {}", path_, instead_);
  } else if (ask("PRAGMA user_version") != kLayout) {
    refuse("{}: was written by another version of attsvm; move it away or {}", path_, instead_);
  }
  execute("COMMIT");
}

std::int64_t RunStore::find(const RunKey& key) {
  const std::string seed = std::to_string(key.seed);
  const auto bound = [&](Statement& statement) -> Statement& {
    return statement.bind(1, key.experiment).bind(2, key.settings).bind(3, key.version).bind(4, seed);
  };
  Statement insert(*this, "INSERT OR IGNORE INTO sets (experiment, settings, version, seed) VALUES (?, ?, ?, ?)");
  bound(insert).step();
  Statement select(*this, "SELECT id FROM sets WHERE experiment = ? AND settings = ? AND version = ? AND seed = ?");
  if (!bound(select).step()) refuse("{}: is damaged: a set of runs that was just added is missing", path_);
  return select.number(0);
}

std::vector<RunKey> RunStore::keys() {
  std::vector<RunKey> keys;
  Statement select(*this, "SELECT experiment, settings, version, seed FROM sets ORDER BY id");
  const auto text = [&](int column) { return std::string(select.text(column)); };
  while (select.step()) keys.push_back({text(0), text(1), text(2), std::strtoull(text(3).c_str(), nullptr, 10)});
  return keys;
}

void RunStore::read(std::int64_t set, const std::function<bool(std::int64_t, RunRow)>& take) {
  Statement select(*this, "SELECT instance, rejection, result FROM runs WHERE set_id = ? ORDER BY instance");
  select.bind(1, set);
  while (select.step()) {
    const std::int64_t instance = select.number(0);
    Json result = Json::parse(select.text(2), nullptr, false);
    if (result.is_discarded()) refuse("{}: is damaged: run {} of set {} is not JSON", path_, instance, set);
    if (!take(instance, {std::string(select.text(1)), std::move(result)})) return;
  }
}

std::vector<RunRow> RunStore::rows(std::int64_t set) {
  std::vector<RunRow> rows;
  read(set, [&](std::int64_t instance, RunRow row) {
    if (instance != static_cast<std::int64_t>(rows.size())) return false;
    rows.push_back(std::move(row));
    return true;
  });
  return rows;
}

std::map<std::int64_t, RunRow> RunStore::instances(std::int64_t set) {
  std::map<std::int64_t, RunRow> found;
  read(set, [&](std::int64_t instance, RunRow row) { return found.emplace(instance, std::move(row)).second; });
  return found;
}

void RunStore::commit(std::int64_t set, std::uint32_t first, std::span<const RunRow> rows) {
  execute("BEGIN");
  try {
    Statement insert(*this, "INSERT OR REPLACE INTO runs (set_id, instance, rejection, result) VALUES (?, ?, ?, ?)");
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::string result = rows[k].result.dump();
      insert.bind(1, set).bind(2, first + static_cast<std::int64_t>(k)).bind(3, rows[k].rejection).bind(4, result);
      insert.step();
      sqlite3_reset(insert.handle);
    }
  } catch (...) {
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
  execute("COMMIT");
}

void RunStore::forget(std::int64_t set) {
  Statement erase(*this, "DELETE FROM runs WHERE set_id = ?");
  erase.bind(1, set).step();
}

}  // namespace attsvm::internal
