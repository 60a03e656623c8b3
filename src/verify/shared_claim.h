#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/packed.h"
#include "verify/progress.h"
#include "verify/rows.h"

namespace attsvm::internal {

/// A claim about a task whose queries ranks share: what one rank has of both.
struct SharedClaim {
  const AttentionTask* part;
  StoredSolution claim;  ///< with the rows, the selection and the relaxed queries of the part; the rest as it is
  proof::Place place{};
  Array rhs{}, dual{};                                        ///< of all rows, f64; not given for W alone
  std::vector<std::pair<std::string, std::size_t>> stated{};  ///< the arrays of rows, and how many they have in all
};

/// verify() of the whole claim, on rank 0. Nothing: it takes the whole task on one rank, because the problem is small,
/// the margin soft, or the arithmetic with error bounds too coarse. Where a rank refuses the claim, so does this.
std::optional<Verification> verify(const SharedClaim& shared, const VerifySettings& settings, const TellVerify& tell,
                                   const Ask& ask);

/// How the other ranks answer.
class ClaimMember {
 public:
  /// Null: the rank has no queries. What `shared` points to must outlive this.
  ClaimMember(const SharedClaim* shared, Index rank);
  ~ClaimMember();
  std::string answer(const std::string& job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attsvm::internal
