#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/theory.h"
#include "ranks/ranks.h"

namespace attsvm::internal {

/// What is known of a claim: a ClaimResult whose counter-example is a file.
struct TestedClaim {
  const Claim* claim = nullptr;
  Index tasks = 0, held = 0;
  double worst = 0;
  double seconds = 0;     ///< of all calls that tested it
  bool complete = false;  ///< all its tasks are tested
  std::vector<ClaimFigure> figures{};
  std::string words{}, example{};  ///< of the counter-example, and the bytes of its task file; empty: there is none
};

/// Where a test of several claims is.
struct ClaimsProgress {
  Index done = 0, claims = 0;       ///< claims
  const Claim* now = nullptr;       ///< the claim that is being tested; null: several are, on several ranks
  Index tasks_done = 0, tasks = 0;  ///< of that claim
};

/// How to test claims. Their batches are kept in `store`, and tests go on from there.
struct ClaimsOptions {
  Index tasks = 0;                  ///< as in ClaimSettings
  std::uint64_t seed = 0;           ///< as in ClaimSettings
  double time_limit = 0;            ///< seconds for all claims together; 0: none
  std::string store;                ///< a run store; created if it is new
  bool resume = true;               ///< false: first deletes what the store has of these claims, tasks and seed
  std::function<bool()> stopped{};  ///< called often, on any thread; true to stop
  std::function<void(const ClaimsProgress&)> progress{};
  std::function<void(const TestedClaim&)> tested{};  ///< of each complete claim, in order
};

/// Tests claims on all ranks; rank 0 returns those of which a task is tested, in order. What is returned does not
/// depend on the number of ranks or threads, nor on where earlier calls were stopped, but for the seconds. InputError
/// as RunStore has them.
std::vector<TestedClaim> test_claims(std::span<const Claim* const> claims, const ClaimsOptions& options,
                                     Threads& threads, Ranks& crew = ranks());

}  // namespace attsvm::internal
