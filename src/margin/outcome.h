#pragma once

#include <cstdint>

namespace attsvm::internal {

/// How a method that approaches the optimum ended.
enum class SolveOutcome : std::uint8_t {
  converged,  ///< within the tolerance
  stopped,    ///< asked to stop
  stalled,    ///< no more progress, or the problem is not for this method
};

/// How a method that ends after finitely many steps did.
enum class ActiveSetOutcome : std::uint8_t { optimal, infeasible, stopped };

}  // namespace attsvm::internal
