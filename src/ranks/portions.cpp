#include "ranks/portions.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "ranks/letters.h"

namespace attsvm::internal {
namespace {

// A helper has the next portion before it is done with one; rank 0 takes its own portions without a message.
constexpr int kAtHelper = 2, kAtFirst = 1;

}  // namespace

/// The thread on which rank 0 computes. It makes no calls of the wire.
struct Portions::Own {
  explicit Own(const Work& work) : thread([this, &work](const std::stop_token& stop) { compute(work, stop); }) {}

  void compute(const Work& work, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (wake.wait(lock, stop, [&] { return waiting.has_value(); })) {
      const auto [number, portion] = *std::exchange(waiting, std::nullopt);
      lock.unlock();
      std::string text;
      std::exception_ptr problem;
      try {
        text = work(portion);
      } catch (...) {
        problem = std::current_exception();
      }
      lock.lock();
      ready = {number, std::move(text)};
      error = problem;
    }
  }
  void give(std::uint64_t number, const std::string& portion) {
    {
      const std::lock_guard lock(mutex);
      waiting = {number, portion};
    }
    wake.notify_one();
  }
  std::optional<std::pair<std::uint64_t, std::string>> take() {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
    return std::exchange(ready, std::nullopt);
  }

  std::mutex mutex;
  std::condition_variable_any wake;
  std::optional<std::pair<std::uint64_t, std::string>> waiting, ready;
  std::exception_ptr error;
  std::jthread thread;  // last: it uses all of the above
};

Portions::Portions(Ranks& ranks, Work work)
    : ranks_(ranks), work_(std::move(work)), load_(static_cast<std::size_t>(ranks.count()), 0) {
  if (ranks_.count() > 1) own_ = std::make_unique<Own>(work_);
}

Portions::~Portions() = default;

void Portions::hand_out(const Plan& plan) {
  for (int place = 0; place < kAtHelper; ++place) {  // first to those who have nothing
    for (int rank = 0; rank < ranks_.count(); ++rank) {
      int& load = load_[static_cast<std::size_t>(rank)];
      if (load > place || load >= (rank == 0 ? kAtFirst : kAtHelper)) continue;
      auto portion = plan.next();
      if (!portion) return;
      const std::uint64_t number = new_number();
      ++load;
      if (rank == 0) {
        own_->give(number, *portion);
      } else {
        ranks_.wire_->send(rank, sealed({Letter::kPortion, number, *portion}));
      }
      given_.emplace(number, Given{std::move(*portion), rank});
    }
  }
}

bool Portions::take_results(const std::function<void(const std::string&, const std::string&)>& done) {
  const auto take = [&](std::uint64_t number, const std::string& result) {
    const auto found = given_.find(number);
    if (found == given_.end()) return;  // of work that was given up
    --load_[static_cast<std::size_t>(found->second.rank)];
    const std::string portion = std::move(found->second.portion);
    given_.erase(found);
    done(portion, result);
  };
  bool any = false;
  if (const auto mine = own_->take()) {
    take(mine->first, mine->second);
    any = true;
  }
  for (Message message; ranks_.wire_->receive(Wire::kAnyone, message); any = true) {
    const Letter letter = opened(message.bytes);
    throw_if_problem(letter);
    take(letter.number, std::string(letter.text));
  }
  return any;
}

void Portions::run(const Plan& plan) {
  if (!own_) {
    while (!plan.over()) {
      const auto portion = plan.next();
      if (!portion) return;
      plan.done(*portion, work_(*portion));
    }
    return;
  }
  Patience patience;
  while (!plan.over()) {
    hand_out(plan);
    if (given_.empty()) return;
    if (take_results(plan.done)) {
      patience.reset();
    } else {
      patience.wait();
    }
  }
}

void Portions::finish(const std::function<void(const std::string&, const std::string&)>& done) {
  for (Patience patience; !given_.empty();) {
    if (!take_results(done)) patience.wait();
  }
}

}  // namespace attsvm::internal
