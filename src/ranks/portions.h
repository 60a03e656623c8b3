#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranks/ranks.h"

namespace attsvm::internal {

/// Work that rank 0 hands out in portions to all ranks, itself included, as they ask for more: slow ranks hold nobody
/// up. While others are there, rank 0 computes on a thread of its own, so that it always answers.
class Portions {
 public:
  using Work = std::function<std::string(const std::string& portion)>;

  struct Plan {
    /// The next portion; none: nothing can be handed out before more results are there.
    std::function<std::optional<std::string>()> next;
    std::function<void(const std::string& portion, const std::string& result)> done;
    /// Whether to return. Asked before every portion, and often while results are awaited.
    std::function<bool()> over;
  };

  Portions(Ranks& ranks, Work work);
  ~Portions();
  Portions(const Portions&) = delete;
  Portions& operator=(const Portions&) = delete;

  /// Hands out portions until the plan is over, or until none is left and all results are there. Portions that are
  /// still being computed then stay so: a later run() takes their results.
  void run(const Plan& plan);
  /// Waits for the portions that are being computed, and hands out no more.
  void finish(const std::function<void(const std::string& portion, const std::string& result)>& done);

 private:
  struct Own;
  struct Given {
    std::string portion;
    int rank;
  };
  void hand_out(const Plan& plan);
  bool take_results(const std::function<void(const std::string&, const std::string&)>& done);

  Ranks& ranks_;
  Work work_;
  std::map<std::uint64_t, Given> given_;  // by number
  std::vector<int> load_;                 // portions at each rank
  std::unique_ptr<Own> own_;              // rank 0's thread; null while it is alone
};

}  // namespace attsvm::internal
