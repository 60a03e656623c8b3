#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <type_traits>

#include "session.h"
#include "train/settings.h"

namespace attsvm::internal {

// Options and parsers that several verbs share.

/// std::from_chars, which also reads whole numbers such as 1e5.
template <class Number>
std::from_chars_result read_number(const char* at, const char* end, Number& item) {
  if constexpr (std::is_integral_v<Number>) {
    double number = 0;
    const auto read = std::from_chars(at, end, number);
    const bool whole = number == std::floor(number) && std::abs(number) <= 0x1p53;
    if (read.ec == std::errc() && std::find_if(at, read.ptr, [](char c) { return c == 'e' || c == 'E'; }) != read.ptr) {
      if (!whole || (std::is_unsigned_v<Number> && number < 0)) return {at, std::errc::invalid_argument};
      item = static_cast<Number>(number);
      return read;
    }
  }
  return std::from_chars(at, end, item);
}

/// Makes the integer options of all verbs accept whole numbers such as 1e5, and those that cannot be negative refuse
/// such numbers, which CLI11 would wrap around.
void accept_whole_numbers(CLI::App& program);

/// Parses comma-separated numbers. `must_be` completes the error "OPTION TEXT: must be …".
template <class Number>
std::vector<Number> parse_list(const std::string& text, const std::string& option, const std::string& must_be) {
  std::vector<Number> items;
  const char *at = text.data(), *end = at + text.size();
  for (bool more = true; more;) {
    Number item{};
    const auto [next, error] = read_number(at, end, item);
    more = error == std::errc() && next != end && *next == ',';
    if (error != std::errc() || (next != end && !more)) {
      throw InputError(fmt::format("{} {}: must be {}", option, text, must_be));
    }
    items.push_back(item);
    at = next + 1;
  }
  return items;
}

/// Quotes a word so that a shell reads it back unchanged.
std::string shell_word(const std::string& text);

/// Such words as one command line.
std::string shell_line(const std::vector<std::string>& words);

/// Accepts one of a few names and replaces it by the number of its enumerator, as CLI11 expects.
template <class Kind>
CLI::Validator one_of(const std::vector<std::pair<std::string, Kind>>& kinds) {
  std::string list;
  for (const auto& [name, kind] : kinds) list += (list.empty() ? "" : "|") + name;
  return CLI::Validator(
      [kinds, list](std::string& text) -> std::string {
        for (const auto& [name, kind] : kinds) {
          if (text != name) continue;
          text = std::to_string(static_cast<int>(kind));
          return {};
        }
        return fmt::format("{}; must be one of {}", text, list);
      },
      list);
}

/// Adds an option that takes the name of a value of an enumeration.
template <class Kind>
void add_choice(CLI::App* verb, const std::string& name, Kind& value, const std::string& help) {
  std::vector<std::pair<std::string, Kind>> kinds;
  kinds.reserve(kNames<Kind>.size());
  for (const std::string_view known : kNames<Kind>) kinds.emplace_back(known, *value_named<Kind>(known));
  verb->add_option(name, value, help)->transform(one_of(kinds));
}

/// Adds --device to a verb that trains many small runs, or solves many small problems, at once.
inline void add_device(CLI::App* verb, Device& device) {
  verb->add_option("--device", device,
                   "Where many small runs are trained at once, and problems solved (default: auto, a GPU if it pays)")
      ->transform(one_of<Device>({{"auto", Device::automatic}, {"cpu", Device::cpu}, {"cuda", Device::cuda}}));
}

inline void add_param(CLI::App* verb, Parametrization& param) {
  add_choice(verb, "--param", param, "Weights to train: W, K and Q with W = K Q', or the prompt p (default: W)");
}

inline void add_loss(CLI::App* verb, Loss& loss) {
  add_choice(verb, "--loss", loss, "Loss, as a function of label times output (default: logistic)");
}

struct ChosenSelection {
  Selection selection;
  std::vector<Tie> ties;  ///< among the best tokens; empty unless the optimal tokens were chosen
};

/// What --norm and --optimizer take: in help, and offered by completions where no part is to be filled in.
inline constexpr const char* kNormForms = "ENUM:fro|nuc|spec|max|l1|lp:P|schatten:P";
inline constexpr const char* kOptimizerForms = "ENUM:gd|ngd|polyak|mirror:P|adam|adamw|signum|lion|muon|steepest:NORM";

/// What --select of several verbs says about itself.
inline constexpr const char* kSelectHelp =
    "file, opt, one token per query such as 7,2,0, a .npy file, or a run's .npz file\n"
    "(default: the file's selection, else opt)";

/// --select file|opt|LIST|FILE.npy|RUN.npz; empty: the file's selection, else opt.
/// `head` is one of many heads, of the run or of the task's own.
ChosenSelection choose_selection(const AttentionTask& task, const std::string& task_path, const std::string& select,
                                 std::optional<Index> head = std::nullopt);

/// --head, as several verbs take it.
inline constexpr const char* kHeadOption = "--head";
inline void add_head(CLI::App* verb, std::optional<Index>& head, const std::string& help) {
  verb->add_option(kHeadOption, head, help)->check(CLI::Range(Index{0}, Index{1} << 40));
}

}  // namespace attsvm::internal
