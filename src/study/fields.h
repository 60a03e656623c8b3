#pragma once

#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

/// Reads the fields of a JSON object written by hand. Every InputError names the field, its value and the rule; done()
/// rejects unknown fields.
class Fields {
 public:
  /// `place` is the prefix of the fields' names in errors: "" or "train.".
  Fields(const nlohmann::json& object, std::string place);

  bool has(const std::string& name) { return find(name) != nullptr; }
  Fields object(const std::string& name);  ///< an empty object if it is left out

  std::string text(const std::string& name);  ///< required
  std::string text(const std::string& name, const std::string& standard);
  double number(const std::string& name, double standard, double least,
                double most = std::numeric_limits<double>::max());
  Index whole(const std::string& name, Index standard, Index least);
  bool flag(const std::string& name, bool standard);

  /// One value, or a list of different values; empty if the field is left out.
  std::vector<Index> wholes(const std::string& name, Index least);
  std::vector<double> numbers(const std::string& name, double least);
  std::vector<std::string> texts(const std::string& name);

  /// Refuses fields that were not read.
  void done() const;
  /// "train.steps"
  std::string place_of(const std::string& name) const { return place_ + name; }

 private:
  const nlohmann::json* find(const std::string& name);
  const nlohmann::json& required(const std::string& name);
  std::vector<nlohmann::json> list(const std::string& name);

  nlohmann::json object_;
  std::string place_;
  std::set<std::string> read_;
};

/// Refuses a text that is not among the words. Returns it.
const std::string& one_of(const std::string& field, const std::string& text, const std::vector<std::string>& words);

}  // namespace attsvm::internal
