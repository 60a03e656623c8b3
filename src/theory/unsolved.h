#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>

#include "attsvm/next_token.h"
#include "attsvm/theory.h"

namespace attsvm::internal {

/// How the solves of a check ended that reached neither an optimum nor a certificate, by the name of the norm. What
/// depends on such an SVM is not known.
using Unsolved = std::map<std::string, MarginStatus>;

inline Unsolved unsolved(std::initializer_list<const MarginSolution*> solutions, std::span<const MarginShares> shares) {
  Unsolved list;
  const auto add = [&](const Norm& norm, MarginStatus status) {
    if (!is_settled(status)) list.emplace(norm.name(), status);
  };
  for (const MarginSolution* one : solutions) {
    if (one != nullptr) add(one->norm, one->status);
  }
  for (const MarginShares& one : shares) add(one.norm, one.status);
  return list;
}

inline Unsolved unsolved(const Check& check) {
  return unsolved({check.report ? &check.report->solution : nullptr, check.gen ? &*check.gen : nullptr,
                   check.nuclear ? &*check.nuclear : nullptr},
                  check.shares);
}

inline Unsolved unsolved(const NextTokenCheck& check) {
  return unsolved({&check.smallest, check.nuclear ? &*check.nuclear : nullptr}, check.shares);
}

}  // namespace attsvm::internal
