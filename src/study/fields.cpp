#include "study/fields.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "base/refuse.h"

namespace attsvm::internal {

using Source = nlohmann::json;

Fields::Fields(const Source& object, std::string place) : object_(object), place_(std::move(place)) {
  if (!object_.is_object()) {
    refuse("{} must be an object", place_.empty() ? "the file" : place_.substr(0, place_.size() - 1));
  }
}

const Source* Fields::find(const std::string& name) {
  read_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

const Source& Fields::required(const std::string& name) {
  const Source* value = find(name);
  if (value == nullptr) refuse("{} is missing", place_of(name));
  return *value;
}

Fields Fields::object(const std::string& name) {
  const Source* value = find(name);
  return {value == nullptr ? Source::object() : *value, place_of(name) + "."};
}

std::string Fields::text(const std::string& name) {
  const Source& value = required(name);
  if (!value.is_string()) refuse("{} = {}; must be text", place_of(name), value.dump());
  return value.get<std::string>();
}

std::string Fields::text(const std::string& name, const std::string& standard) {
  return has(name) ? text(name) : standard;
}

namespace {

double as_number(const std::string& place, const Source& value, double least, double most) {
  if (!value.is_number() || value.get<double>() < least || value.get<double>() > most) {
    refuse("{} = {}; must be a number of at least {}{}", place, value.dump(), least,
           most < std::numeric_limits<double>::max() ? fmt::format(" and at most {}", most) : "");
  }
  return value.get<double>();
}

/// 100000, and 1e5 too, which JSON reads as a number with a fraction.
Index as_whole(const std::string& place, const Source& given, Index least) {
  constexpr Index kMost = Index{1} << 40;
  Source value = given;
  if (given.is_number_float() && given.get<double>() == std::floor(given.get<double>()) &&
      std::abs(given.get<double>()) <= static_cast<double>(kMost)) {
    value = static_cast<Index>(given.get<double>());
  }
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost)) &&
                    value.get<Index>() >= least && value.get<Index>() <= kMost;
  if (!fits) refuse("{} = {}; must be a whole number of at least {}", place, given.dump(), least);
  return value.get<Index>();
}

}  // namespace

double Fields::number(const std::string& name, double standard, double least, double most) {
  const Source* value = find(name);
  return value == nullptr ? standard : as_number(place_of(name), *value, least, most);
}

Index Fields::whole(const std::string& name, Index standard, Index least) {
  const Source* value = find(name);
  return value == nullptr ? standard : as_whole(place_of(name), *value, least);
}

bool Fields::flag(const std::string& name, bool standard) {
  const Source* value = find(name);
  if (value == nullptr) return standard;
  if (!value->is_boolean()) refuse("{} = {}; must be true or false", place_of(name), value->dump());
  return value->get<bool>();
}

std::vector<Source> Fields::list(const std::string& name) {
  const Source* value = find(name);
  if (value == nullptr) return {};
  std::vector<Source> items = value->is_array() ? value->get<std::vector<Source>>() : std::vector<Source>{*value};
  if (items.empty()) refuse("{} is an empty list; leave it out, or give at least one value", place_of(name));
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (std::find(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(k), items[k]) !=
        items.begin() + static_cast<std::ptrdiff_t>(k)) {
      refuse("{} has {} twice", place_of(name), items[k].dump());
    }
  }
  return items;
}

std::vector<Index> Fields::wholes(const std::string& name, Index least) {
  std::vector<Index> numbers;
  for (const Source& item : list(name)) numbers.push_back(as_whole(place_of(name), item, least));
  return numbers;
}

std::vector<double> Fields::numbers(const std::string& name, double least) {
  std::vector<double> numbers;
  for (const Source& item : list(name))
    numbers.push_back(as_number(place_of(name), item, least, std::numeric_limits<double>::max()));
  return numbers;
}

std::vector<std::string> Fields::texts(const std::string& name) {
  std::vector<std::string> words;
  for (const Source& item : list(name)) {
    if (!item.is_string()) refuse("{} = {}; must be text, or a list of texts", place_of(name), item.dump());
    words.push_back(item.get<std::string>());
  }
  return words;
}

void Fields::done() const {
  for (const auto& [name, value] : object_.items()) {
    if (!read_.contains(name))
      refuse("unknown field {}; {}", place_of(name), suggestion(name, {read_.begin(), read_.end()}));
  }
}

const std::string& one_of(const std::string& field, const std::string& text, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) == words.end())
    refuse("{} = \"{}\"; {}", field, text, suggestion(text, words));
  return text;
}

}  // namespace attsvm::internal
