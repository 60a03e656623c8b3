#include "attsvm/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/refuse.h"

namespace attsvm {

struct Threads::Pool {
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(std::int64_t)>* work = nullptr;
  std::int64_t chunks = 0;
  std::atomic<std::int64_t> next{0};
  std::uint64_t round = 0;
  std::size_t busy = 0;
  bool stop = false;
  std::exception_ptr error;
  std::int64_t error_chunk = 0;
  std::vector<std::jthread> helpers;

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    helpers.clear();  // joins
  }

  /// Takes chunks until none is left.
  void share() {
    for (std::int64_t chunk; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
      try {
        (*work)(chunk);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error || chunk < error_chunk) {
          error = std::current_exception();
          error_chunk = chunk;
        }
      }
    }
  }

  void help() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || round != seen; });
      if (stop) return;
      seen = round;
      lock.unlock();
      share();
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }
};

Threads::Threads(int count) : pool_(std::make_unique<Pool>()) {
  if (count < 0) refuse("threads = {}; must be at least 1, or 0 for all cores", count);
  if (count == 0) count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  try {
    for (int i = 1; i < count; ++i) pool_->helpers.emplace_back([pool = pool_.get()] { pool->help(); });
  } catch (const std::system_error& error) {
    const int started = this->count();
    pool_->end();
    refuse("threads = {}; only {} could be started: {}", count, started, error.code().message());
  }
}

Threads::~Threads() { pool_->end(); }

int Threads::count() const { return static_cast<int>(pool_->helpers.size()) + 1; }

void Threads::for_each(std::int64_t chunks, const std::function<void(std::int64_t)>& work) {
  Pool& pool = *pool_;
  const bool shared = chunks > 1 && !pool.helpers.empty();
  {
    const std::lock_guard lock(pool.mutex);
    pool.work = &work;
    pool.chunks = chunks;
    pool.next = 0;
    pool.error = nullptr;
    pool.busy = shared ? pool.helpers.size() : 0;
    if (shared) ++pool.round;
  }
  if (shared) pool.wake.notify_all();
  pool.share();
  std::unique_lock lock(pool.mutex);
  pool.done.wait(lock, [&] { return pool.busy == 0; });
  if (pool.error) std::rethrow_exception(pool.error);
}

}  // namespace attsvm
