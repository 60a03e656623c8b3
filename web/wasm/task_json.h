#pragma once

#include <nlohmann/json.hpp>

#include "attsvm/task.h"

namespace attsvm::internal {

using Json = nlohmann::ordered_json;

/// What the page asks: words, and the numbers of all arrays in one row, because to read them from text takes longer
/// than to solve a small problem. An array in `words` is {"shape": [1,3,2], "from": 0}, where its numbers begin.
struct Request {
  const Json& words;
  const double* numbers;

  const Json& at(const char* name) const { return words.at(name); }
  bool has(const char* name) const { return words.contains(name) && !words.at(name).is_null(); }
  RowMatrix matrix(const Json& array) const;  ///< of an array with two axes
  /// The task whose arrays have their names in task files. The numbers of `select` are tokens, or 0 and 1 in a mask.
  AttentionTask task() const;
};

/// The arrays of a task: {"tokens": {"shape": [1,3,2], "data": […]}, …}.
Json to_json(const AttentionTask& task);
Json to_json(const RowMatrix& matrix);  ///< a list of rows

}  // namespace attsvm::internal
