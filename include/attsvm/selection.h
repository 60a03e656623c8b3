#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attsvm/array.h"

namespace attsvm {

/// For every query the tokens it keeps (indices within its sequence, ascending, at least one).
class Selection {
 public:
  /// One token a query.
  static Selection single(std::span<const Index> tokens);
  /// A set a query; each is sorted here.
  static Selection sets(const std::vector<std::vector<Index>>& tokens);
  /// As files give it: (q) integers, or a (q,longest) bool mask. InputError, naming `name` and the place, if a token
  /// is not among the query's visible ones or a mask row keeps nothing.
  static Selection from_array(const Array& array, std::span<const Index> visible, Index longest, std::string_view name);

  Index queries() const { return static_cast<Index>(begin_.size()) - 1; }
  std::span<const Index> kept(Index query) const;
  Index first(Index query) const { return kept(query).front(); }
  std::vector<Index> firsts() const;  ///< of every query
  bool keeps(Index query, Index token) const;
  bool is_single() const { return static_cast<Index>(tokens_.size()) == queries(); }

  Array mask(Index longest) const;  ///< (q,longest) bool

  friend bool operator==(const Selection&, const Selection&) = default;

 private:
  void append(std::vector<Index> tokens);

  std::vector<Index> begin_{0};  // q+1
  std::vector<Index> tokens_;
};

}  // namespace attsvm
