#include "attsvm/threads.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/refuse.h"

namespace attsvm {

using namespace internal;

// A helper polls for the next loop (kPatience turns) before it sleeps, because solvers start loops in quick succession.
// The caller waits only for helpers that have entered its loop; it does not wait for one that wakes up too late.
struct Threads::Pool {
  static constexpr std::uint64_t kOpen = 1ULL << 31, kInside = kOpen - 1;

  std::atomic<std::uint64_t> gate{0};  // number of the loop · 2³² | open | helpers inside
  std::atomic<std::int64_t> next{0};
  std::atomic<std::uint32_t> calls{0};  // sleeping helpers wait for this to change
  std::atomic<int> asleep{0};
  std::atomic<bool> stop{false};
  const std::function<void(std::int64_t)>* work = nullptr;
  std::int64_t chunks = 0;
  std::uint64_t loops = 0;
  std::mutex error_mutex;
  std::exception_ptr error;
  std::int64_t error_chunk = 0;
  std::vector<std::jthread> helpers;

  static void pause(int turn) {
    if (turn % 4096 == 4095) {
      std::this_thread::yield();
    } else {
      hwy::Pause();
    }
  }

  /// Takes chunks until none is left.
  void share() {
    for (std::int64_t chunk; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
      try {
        (*work)(chunk);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error || chunk < error_chunk) {
          error = std::current_exception();
          error_chunk = chunk;
        }
      }
    }
  }

  void help() {
    constexpr int kPatience = 20'000;
    std::uint64_t seen = 0;
    for (int idle = 0; !stop;) {
      const std::uint32_t call = calls.load(std::memory_order_acquire);
      std::uint64_t now = gate.load(std::memory_order_acquire);
      if ((now & kOpen) != 0 && now >> 32 != seen) {
        if (!gate.compare_exchange_strong(now, now + 1, std::memory_order_acq_rel)) continue;
        seen = now >> 32;
        share();
        gate.fetch_sub(1, std::memory_order_acq_rel);
        idle = 0;
      } else if (++idle < kPatience) {
        pause(idle);
      } else {
        asleep.fetch_add(1);
        if (!stop) calls.wait(call);
        asleep.fetch_sub(1);
        idle = 0;
      }
    }
  }

  void call() {
    calls.fetch_add(1);
    if (asleep.load() > 0) calls.notify_all();
  }

  void end() {
    stop = true;
    calls.fetch_add(1);
    calls.notify_all();
    helpers.clear();  // joins
  }
};

std::string_view name_of(Device device) {
  return device == Device::automatic ? "auto" : device == Device::cpu ? "cpu" : "cuda";
}

Threads::Threads(int count) : pool_(std::make_unique<Pool>()) {
  if (count < 0) refuse("threads = {}; must be at least 1, or 0 for all cores", count);
  if (count == 0) count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  try {
    for (int i = 1; i < count; ++i) pool_->helpers.emplace_back([pool = pool_.get()] { pool->help(); });
  } catch (const std::exception& error) {
    const int started = this->count();
    pool_->end();
    refuse("threads = {}; only {} could be started: {}", count, started, error.what());
  }
}

Threads::~Threads() { pool_->end(); }

int Threads::count() const { return static_cast<int>(pool_->helpers.size()) + 1; }
Device Threads::device() const { return device_; }
void Threads::set_device(Device device) { device_ = device; }

void Threads::for_each(std::int64_t chunks, const std::function<void(std::int64_t)>& work) {
  Pool& pool = *pool_;
  pool.work = &work;
  pool.chunks = chunks;
  pool.next.store(0, std::memory_order_relaxed);
  pool.error = nullptr;
  const bool shared = chunks > 1 && !pool.helpers.empty();
  if (shared) {
    pool.gate.store(++pool.loops << 32 | Pool::kOpen, std::memory_order_release);
    pool.call();
  }
  pool.share();
  if (shared) {
    pool.gate.fetch_and(~Pool::kOpen, std::memory_order_acq_rel);  // no helper may enter from here on
    for (int turn = 0; (pool.gate.load(std::memory_order_acquire) & Pool::kInside) != 0; ++turn) Pool::pause(turn);
  }
  if (pool.error) std::rethrow_exception(pool.error);
}

}  // namespace attsvm
