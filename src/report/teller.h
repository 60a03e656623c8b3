#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "attsvm/margin.h"
#include "attsvm/report.h"

namespace attsvm::internal {

/// Tells the reader how far the report is, part by part.
class Teller {
 public:
  explicit Teller(const ReportRequest& request)
      : tell_(request.progress),
        parts_(static_cast<double>(request.solutions.size() + std::max<std::size_t>(1, request.runs.size()) + 1)) {}

  void begin(std::string part) {
    part_ = std::move(part);
    say(part_);
    ++begun_;
  }
  /// For solves, which go on for a while.
  std::function<bool(const SolveProgress&)> of_solves() {
    return [this](const SolveProgress& now) {
      say(fmt::format("{}, iteration {}", part_, now.iteration), 1);
      return false;
    };
  }

 private:
  void say(std::string words, int inside = 0) const {
    if (tell_) tell_({.share = (begun_ - inside) / parts_, .part = std::move(words)});
  }

  const std::function<void(const ReportProgress&)>& tell_;
  double parts_;
  int begun_ = 0;
  std::string part_;
};

}  // namespace attsvm::internal
