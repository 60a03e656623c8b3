#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ranks/ranks.h"

namespace attsvm::test {

/// The letters between ranks that are threads of one process.
struct Mail {
  explicit Mail(int count) : boxes(static_cast<std::size_t>(count)) {}
  std::mutex mutex;
  std::vector<std::deque<internal::Message>> boxes;  // by receiver
};

class MemoryWire final : public internal::Wire {
 public:
  MemoryWire(std::shared_ptr<Mail> mail, int rank) : mail_(std::move(mail)), rank_(rank) {}

  int rank() const override { return rank_; }
  int count() const override { return static_cast<int>(mail_->boxes.size()); }
  void send(int to, std::string_view bytes) override {
    const std::lock_guard lock(mail_->mutex);
    mail_->boxes[static_cast<std::size_t>(to)].push_back({rank_, std::string(bytes)});
  }
  bool receive(int from, internal::Message& message) override {
    const std::lock_guard lock(mail_->mutex);
    auto& box = mail_->boxes[static_cast<std::size_t>(rank_)];
    for (auto letter = box.begin(); letter != box.end(); ++letter) {
      if (from != kAnyone && letter->from != from) continue;
      message = std::move(*letter);
      box.erase(letter);
      return true;
    }
    return false;
  }

 private:
  std::shared_ptr<Mail> mail_;
  int rank_;
};

/// What a rank sends and receives by, given the memory of all ranks.
using MakeWire = std::function<std::unique_ptr<internal::Wire>(std::shared_ptr<Mail> mail, int rank)>;

inline std::unique_ptr<internal::Wire> memory_wire(std::shared_ptr<Mail> mail, int rank) {
  return std::make_unique<MemoryWire>(std::move(mail), rank);
}

/// Runs `work` on ranks 0 … count−1, rank 0 on the calling thread, and leaves with the exit code that rank 0 returns.
/// The codes of all ranks, in order.
inline std::vector<int> on_ranks(int count, const std::function<int(internal::Ranks&)>& work,
                                 const MakeWire& wire = memory_wire) {
  const auto mail = std::make_shared<Mail>(count);
  std::vector<int> codes(static_cast<std::size_t>(count), -1);
  const auto run = [&](int rank) {
    internal::Ranks ranks(wire(mail, rank));
    int code = 0;
    try {
      code = work(ranks);
    } catch (const internal::JobOver&) {  // what leave() returns says why
    }
    codes[static_cast<std::size_t>(rank)] = ranks.leave(code);
  };
  std::vector<std::jthread> others;
  for (int rank = 1; rank < count; ++rank) others.emplace_back(run, rank);
  run(0);
  others.clear();  // joins
  return codes;
}

}  // namespace attsvm::test
