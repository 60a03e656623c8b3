#include "options.h"

namespace attsvm::internal {

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
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

ChosenSelection choose_selection(const AttentionTask& task, const std::string& task_path, const std::string& select) {
  if (select == "file" && !task.select()) throw InputError(task_path + ": select is missing; --select file needs it");
  if (select == "file" || (select.empty() && task.select())) return {*task.select(), {}};
  if (select.empty() || select == "opt") {
    if (task.head().kind == HeadKind::none)
      throw InputError(task_path +
                       ": head is missing; optimal tokens need one (or give another selection with --select FILE.npy)");
    OptimalTokens optimal = with_place(task_path, [&] { return optimal_tokens(task); });
    return {std::move(optimal.selection), std::move(optimal.ties)};
  }
  if (select.find_first_not_of("0123456789,") == std::string::npos) {
    throw InputError(fmt::format(
        "--select {}: must be file, opt or a .npy file; numpy.save(\"select.npy\", [{}]) writes one for --select "
        "select.npy",
        select, select));
  }
  const Array array = read_npy(select);
  return {with_place(select, [&] { return Selection::from_array(array, task.visible(), task.longest(), "select"); }),
          {}};
}

}  // namespace attsvm::internal
