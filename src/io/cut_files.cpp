#include "io/cut_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "base/refuse.h"

namespace attsvm::internal {

// The handler may not take a lock, so entries are never freed: closing a file leaves its entry to the next one.
struct MappedRange::Entry {
  std::atomic<std::uintptr_t> begin = 0, end = 0;  // begin is set last and cleared first; 0: not in use
  std::atomic<bool> cut = false;
  std::string path;
  Entry* next = nullptr;
};

namespace {

std::mutex ranges_mutex;  // of those who add and remove entries
std::atomic<MappedRange::Entry*> mapped_ranges = nullptr;
std::atomic<CutFileHook> hook_now = nullptr;
bool watches_faults = false;
struct sigaction handler_before {};

std::uintptr_t page_size() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

/// Maps zeros over the range from the page of `at` on. False: the system refuses.
bool read_zeros_from(std::uintptr_t at, std::uintptr_t end) {
  const std::uintptr_t first = at / page_size() * page_size();
  return ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

/// Whether the fault is ours to mend.
bool mended_fault(const siginfo_t* facts) {
  const CutFileHook hook = hook_now;
  if (hook == nullptr || facts->si_code != BUS_ADRERR) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(facts->si_addr);
  for (MappedRange::Entry* entry = mapped_ranges; entry != nullptr; entry = entry->next) {
    const std::uintptr_t begin = entry->begin, end = entry->end;
    if (begin == 0 || at < begin || at >= end) continue;
    if (!entry->cut.exchange(true)) hook(entry->path.c_str());
    return read_zeros_from(at, end);
  }
  return false;
}

void on_bus_error(int number, siginfo_t* facts, void* context) {
  if (mended_fault(facts)) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(number, facts, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(number);
  } else {
    std::signal(number, SIG_DFL);
    if (facts->si_code != BUS_ADRERR) std::raise(number);  // a fault comes again by itself
  }
}

/// With ranges_mutex held.
void watch_faults() {
  if (watches_faults || hook_now == nullptr) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  watches_faults = ::sigaction(SIGBUS, &ours, &handler_before) == 0;
}

}  // namespace

CutFileHook on_cut_file(CutFileHook hook) { return hook_now.exchange(hook); }

void refuse_cut_files() {
  const std::lock_guard lock(ranges_mutex);
  for (const MappedRange::Entry* entry = mapped_ranges; entry != nullptr; entry = entry->next) {
    if (entry->begin != 0 && entry->cut)
      refuse("{}: became shorter while it was in use; what was loaded from it is lost", entry->path);
  }
}

MappedRange::MappedRange(const std::string& path, Bytes bytes) {
  if (bytes.empty()) return;
  const std::lock_guard lock(ranges_mutex);
  Entry* free = mapped_ranges;
  while (free != nullptr && free->begin != 0) free = free->next;
  entry_ = free != nullptr ? free : new Entry;
  entry_->path = printable(path);
  entry_->cut = false;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  entry_->end = begin + (bytes.size() + page_size() - 1) / page_size() * page_size();
  entry_->begin = begin;
  if (free == nullptr) {
    entry_->next = mapped_ranges;
    mapped_ranges = entry_;
  }
  watch_faults();
}

MappedRange::~MappedRange() {
  if (entry_ != nullptr) entry_->begin = 0;
}

}  // namespace attsvm::internal
