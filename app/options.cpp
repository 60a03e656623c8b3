#include "options.h"

#include <filesystem>

#include "base/refuse.h"

namespace attsvm::internal {

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_word(word);
  }
  return line;
}

void accept_whole_numbers(CLI::App& program) {
  for (CLI::App* verb : program.get_subcommands(nullptr)) {
    for (CLI::Option* option : verb->get_options(std::function<bool(CLI::Option*)>())) {
      const std::string type = option->get_type_name();
      const bool natural = type.starts_with("UINT");
      if (!natural && !type.starts_with("INT")) continue;
      const auto rewrite = [natural](std::string& text) -> std::string {
        std::int64_t number = 0;
        const char* end = text.data() + text.size();
        const auto [next, error] = read_number(text.data(), end, number);
        if (natural && text.starts_with("-")) return text + "; must be a whole number from 0 up";
        if (error == std::errc() && next == end) text = std::to_string(number);
        return {};  // other texts are left to the option
      };
      option->transform(CLI::Validator(rewrite, ""));
    }
  }
}

namespace {

constexpr std::string_view kSelectForms = "file, opt, one token per query such as 7,2,0, a .npy file, or a run (.npz)";

/// Whether a text is meant as a list of tokens, however wrong: not the name of a file that is there or could be.
bool is_token_list(const std::string& text) {
  if (text.ends_with(".npy") || text.ends_with(".npz") || std::filesystem::exists(text)) return false;
  return text.find(',') != std::string::npos || text.find_first_not_of("0123456789+-. ") == std::string::npos;
}

Array token_list(const AttentionTask& task, const std::string& text) {
  std::vector<Index> tokens =
      parse_list<Index>(text, "--select", "token numbers separated by commas, one per query, such as 7,2,0");
  const auto count = static_cast<Index>(tokens.size());
  if (count != task.queries()) {
    throw InputError(fmt::format("--select {}: has {}; must be one per query, {} in all", text, counted(count, "token"),
                                 task.queries()));
  }
  return Array::own(std::move(tokens), {count});
}

Array selected_of_run(const AttentionTask& task, const std::string& path, std::optional<Index> head) {
  Threads alone(1);
  const NpzFile file(path);
  if (!file.has("selected")) throw InputError(path + ": selected is missing; --select takes it from a run");
  if (file.has("W") && file.has("task_fingerprint"))
    with_place(path, [&] { require_run_of(task, load_run(path, alone)); });
  const Array selected = file.read("selected", alone);
  return with_place(path, [&] {
    if (selected.rank() != 2 || !file.has("W") || file.read("W", alone).rank() != 3) {
      if (head) refuse("{} {}: the run has one head", kHeadOption, *head);
      return selected;
    }
    const Index heads = selected.shape[0], queries = selected.shape[1];
    if (!head) refuse("is a run of {} heads; choose one with {}", heads, kHeadOption);
    if (*head >= heads) refuse("{} {}: must be from 0 to {}, the heads of the run", kHeadOption, *head, heads - 1);
    const std::vector<Index> all = to_indices(selected, "selected");
    return Array::own(std::vector<Index>(all.begin() + *head * queries, all.begin() + (*head + 1) * queries),
                      {queries});
  });
}

}  // namespace

ChosenSelection choose_selection(const AttentionTask& given, const std::string& task_path, const std::string& select,
                                 std::optional<Index> head) {
  const bool of_run = select.ends_with(".npz");
  const AttentionTask task =
      head && !of_run ? with_place(task_path, [&] { return with_head(given, *head, kHeadOption); }) : given;
  if (select == "file" && !task.select()) throw InputError(task_path + ": select is missing; --select file needs it");
  if (select == "file" || (select.empty() && task.select())) return {*task.select(), {}};
  if (select.empty() || select == "opt") {
    if (task.head().kind == HeadKind::none && task.arrays().head.given())
      throw InputError(fmt::format("{}: head has one v per head; choose one with {}", task_path, kHeadOption));
    if (task.head().kind == HeadKind::none)
      throw InputError(task_path +
                       ": head is missing; optimal tokens need one (or give another selection with --select FILE.npy)");
    OptimalTokens optimal = with_place(task_path, [&] { return optimal_tokens(task); });
    return {std::move(optimal.selection), std::move(optimal.ties)};
  }
  const auto chosen = [&](const std::string& place, const Array& array, std::string_view name) {
    return ChosenSelection{
        with_place(place, [&] { return Selection::from_array(array, task.visible(), task.longest(), name); }), {}};
  };
  if (is_token_list(select)) return chosen("--select " + select, token_list(task, select), "token");
  if (of_run) return chosen(select, selected_of_run(task, select, head), "selected");
  if (!std::filesystem::exists(select))
    throw InputError(fmt::format("--select {}: no such file; must be {}", select, kSelectForms));
  return chosen(select, read_npy(select), "select");
}

}  // namespace attsvm::internal
