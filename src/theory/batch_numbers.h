#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <variant>
#include <vector>

#include "attsvm/theory.h"

namespace attsvm::internal {

/// The variables that the batches of an experiment change. What each batch leaves in them is kept as numbers, so that
/// a test that was stopped goes on after its last batch.
class BatchNumbers {
 public:
  /// Adds an Index, a double, a std::vector<double> that only grows, a struct whose numbers() ties its variables, or a
  /// range of these. They must stay where they are.
  template <class T>
  void add(T& part) {
    if constexpr (std::same_as<T, Index> || std::same_as<T, double> || std::same_as<T, std::vector<double>>) {
      places_.push_back({&part});
    } else if constexpr (requires { part.numbers(); }) {
      std::apply([&](auto&... one) { (add(one), ...); }, part.numbers());
    } else {
      for (auto& one : part) add(one);
    }
  }

  /// Remembers what the variables are, for undo(); so do take() and put().
  void mark();
  /// Sets the variables to what they were.
  void undo();
  /// What changed since the last call: each variable, and the new entries of each list behind their count.
  ClaimBatch take();
  /// Sets the variables to what take() returned, batch after batch. InputError if it is not of these variables.
  void put(const ClaimBatch& batch);

 private:
  struct Place {
    std::variant<Index*, double*, std::vector<double>*> where;
    double last = 0;       // of a number
    std::size_t kept = 0;  // entries of a list
  };
  std::vector<Place> places_;
};

}  // namespace attsvm::internal
