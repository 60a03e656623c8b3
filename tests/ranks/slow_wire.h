#pragma once

#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "ranks/memory_wire.h"

namespace attsvm::test {

/// A network: every message arrives `latency` seconds after its last byte has left, and a rank sends or receives
/// `bandwidth` bytes per second, one message after another.
struct Network {
  double latency = 0, bandwidth = 1;
};

/// Messages of another wire, as late as this network would carry them.
class SlowWire final : public internal::Wire {
 public:
  using Clock = std::chrono::steady_clock;

  SlowWire(std::unique_ptr<Wire> fast, const Network& network) : fast_(std::move(fast)), network_(network) {}

  int rank() const override { return fast_->rank(); }
  int count() const override { return fast_->count(); }
  /// Returns when the last byte has left.
  void send(int to, std::string_view bytes) override {
    std::this_thread::sleep_for(seconds(static_cast<double>(bytes.size()) / network_.bandwidth));
    const Clock::time_point arrival = Clock::now() + seconds(network_.latency);
    std::string stamped(sizeof arrival, ' ');
    std::memcpy(stamped.data(), &arrival, sizeof arrival);
    fast_->send(to, stamped.append(bytes));
  }
  bool receive(int from, internal::Message& message) override {
    for (internal::Message next; fast_->receive(kAnyone, next);) waiting_.push_back(std::move(next));
    for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
      Clock::time_point arrival;
      std::memcpy(&arrival, next->bytes.data(), sizeof arrival);
      if ((from != kAnyone && next->from != from) || arrival > Clock::now()) continue;
      message = {next->from, next->bytes.substr(sizeof arrival)};
      waiting_.erase(next);
      return true;
    }
    return false;
  }

 private:
  static Clock::duration seconds(double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  }

  std::unique_ptr<Wire> fast_;
  Network network_;
  std::deque<internal::Message> waiting_;
};

}  // namespace attsvm::test
