// A run store whose process is killed at each write: what was committed is there afterwards, and nothing else.
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "io/run_store.h"
#include "support.h"

namespace attsvm {
namespace {

constexpr std::int64_t kCommits = 3;
constexpr std::size_t kRowsPerCommit = 4;

// SQLite's own file functions, except that the process ends at change number `end_at` of a file, half of which a write
// still makes.
long changes = 0, end_at = 0;
std::array<const sqlite3_io_methods*, 2> real_methods{};  // of other files, of the store
std::array<sqlite3_io_methods, 2> failing_methods;

const sqlite3_io_methods& real_methods_of(const sqlite3_file* file) {
  return *real_methods[file->pMethods == &failing_methods[1] ? 1 : 0];
}

bool ends() { return ++changes == end_at; }

int failing_write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  if (!ends()) return real_methods_of(file).xWrite(file, data, size, offset);
  real_methods_of(file).xWrite(file, data, size / 2, offset);
  ::_exit(0);
}

int failing_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (ends()) ::_exit(0);
  return real_methods_of(file).xTruncate(file, size);
}

int failing_sync(sqlite3_file*, int) {  // a kill loses nothing that the system has, so tests need not wait for the disk
  if (ends()) ::_exit(0);
  return SQLITE_OK;
}

int failing_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* got) {
  auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
  const int code = real->xOpen(real, name, file, flags, got);
  if (code == SQLITE_OK) {
    const std::size_t kind = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? 1 : 0;
    sqlite3_io_methods& methods = failing_methods[kind];
    real_methods[kind] = file->pMethods;
    methods = *file->pMethods;
    methods.xWrite = failing_write;
    methods.xTruncate = failing_truncate;
    methods.xSync = failing_sync;
    file->pMethods = &methods;
  }
  return code;
}

int failing_delete(sqlite3_vfs* vfs, const char* name, int sync) {
  if (ends()) ::_exit(0);
  auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
  return real->xDelete(real, name, sync);
}

/// Makes every store of this process use these functions.
void use_failing_files() {
  static sqlite3_vfs failing = *sqlite3_vfs_find(nullptr);
  static sqlite3_vfs* const real = sqlite3_vfs_find(nullptr);
  failing.pAppData = real;
  failing.zName = "failing";
  failing.xOpen = failing_open;
  failing.xDelete = failing_delete;
  sqlite3_vfs_register(&failing, 1);
}

const RunKey kKey{.experiment = "e", .settings = "{}", .version = "1", .seed = 1};

std::vector<RunRow> rows_of(std::int64_t commit) {
  std::vector<RunRow> rows;
  for (std::size_t k = 0; k < kRowsPerCommit; ++k)
    rows.push_back({"", {{"x", commit}, {"long", std::string(3000, 'x')}}});
  return rows;
}

/// Fills the store, and sends the number of each commit that it has made.
void fill(const std::string& path, int report) {
  RunStore store(path);
  const auto set = store.find(kKey);
  for (std::int64_t commit = static_cast<std::int64_t>(store.rows(set).size() / kRowsPerCommit); commit < kCommits;
       ++commit) {
    store.commit(set, static_cast<std::uint32_t>(commit * static_cast<std::int64_t>(kRowsPerCommit)), rows_of(commit));
    const auto made = static_cast<char>(commit + 1);
    if (::write(report, &made, 1) != 1) ::_exit(2);
  }
}

/// Fills the store in a process of its own that ends at a change. How many commits it had reported.
std::int64_t fill_until(const std::string& path, long change, bool& finished) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    changes = 0;
    end_at = change;
    fill(path, pipe[1]);
    ::_exit(7);
  }
  ::close(pipe[1]);
  std::int64_t made = 0;
  for (char commit = 0; ::read(pipe[0], &commit, 1) == 1;) made = commit;
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  finished = WEXITSTATUS(status) == 7;
  EXPECT_TRUE(finished || WEXITSTATUS(status) == 0);
  return made;
}

TEST(RunStoreKilled, KeepsWhatWasCommittedAndNothingElse) {
  use_failing_files();
  const test::Scratch scratch;
  long change = 1;
  for (bool finished = false; !finished; ++change) {
    ASSERT_LT(change, 1000);
    const std::string path = scratch.file("runs" + std::to_string(change));
    const std::int64_t made = fill_until(path, change, finished);
    {
      RunStore store(path);
      const auto rows = store.rows(store.find(kKey));
      // The last commit may be made and not reported.
      ASSERT_EQ(rows.size() % kRowsPerCommit, 0U) << change;
      const auto kept = static_cast<std::int64_t>(rows.size() / kRowsPerCommit);
      EXPECT_TRUE(kept == made || kept == made + 1) << change << ": " << kept << ", reported " << made;
      for (std::size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(rows[k].result.at("x"), k / kRowsPerCommit);
    }
    bool whole = false;
    EXPECT_LE(fill_until(path, 0, whole), kCommits);
    EXPECT_TRUE(whole);
    RunStore store(path);
    EXPECT_EQ(store.rows(store.find(kKey)).size(), kRowsPerCommit * kCommits) << change;
  }
  EXPECT_GT(change, 20);
}

}  // namespace
}  // namespace attsvm
