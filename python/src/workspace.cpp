#include "workspace.h"

#include <pthread.h>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "base/refuse.h"
#include "io/cut_files.h"

namespace attsvm::python {
namespace {

constexpr Index kSmall = 10'000;      // rows; the memory of larger solves is returned to the system
constexpr std::size_t kMostIdle = 4;  // idle workspaces kept per number of threads

struct Idle {
  std::mutex mutex;
  std::map<int, std::vector<std::unique_ptr<Workspace::Kept>>> by_count;
};

Idle* idle = nullptr;

/// A forked child has none of its parent's threads, so it forgets the idle workspaces instead of joining them.
void forget() { idle = new Idle; }

Idle& shared_idle() {
  static std::once_flag once;
  std::call_once(once, [] {
    forget();
    pthread_atfork(nullptr, nullptr, forget);
  });
  return *idle;
}

std::atomic<bool> cut_file_is_untold = false;

}  // namespace

void note_cut_file() noexcept { cut_file_is_untold = true; }
bool take_cut_file() noexcept { return cut_file_is_untold.exchange(false); }

void refuse_cut_files() {
  try {
    internal::refuse_cut_files();
  } catch (const InputError&) {
    (void)take_cut_file();
    throw;
  }
}

Workspace::Workspace(int threads) : asked_(threads) {
  refuse_cut_files();
  Idle& waiting = shared_idle();
  {
    const std::lock_guard lock(waiting.mutex);
    auto& same = waiting.by_count[threads];
    if (!same.empty()) {
      kept_ = std::move(same.back());
      same.pop_back();
    }
  }
  if (!kept_) kept_ = std::make_unique<Kept>(threads);
  kept_->threads.set_device(Device::automatic);
}

Workspace::~Workspace() noexcept(false) {
  {
    Idle& waiting = shared_idle();
    const std::lock_guard lock(waiting.mutex);
    auto& same = waiting.by_count[asked_];
    if (same.size() < kMostIdle) same.push_back(std::move(kept_));
  }
  if (std::uncaught_exceptions() == exceptions_) refuse_cut_files();
}

MarginSolution Workspace::solve(const MarginProblem& problem, const SolveSettings& settings,
                                const MarginSolution* warm_start) {
  if (problem.rows() <= kSmall) return kept_->solver.solve(problem, settings, warm_start);
  return attsvm::solve(problem, settings, kept_->threads, warm_start);
}

}  // namespace attsvm::python
