#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/nearest.h"
#include "options.h"

namespace attsvm::internal {
namespace {

// Everything here is read from the options that the verbs declare, so that it cannot disagree with them.

using Options = std::vector<const CLI::Option*>;

Options options_of(const CLI::App& verb) {
  Options list;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_lnames().empty()) list.push_back(option);
  }
  return list;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& program) { return program.get_subcommands(nullptr); }

/// "--format", "-o", "--out".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

/// The values that an option takes, if they are a list: its validator names them as "a|b" or "{a,b}". Forms such as
/// lp:P have a part to fill in, and shells break words at the colon: they are left out.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  if (option.get_type_size() == 0 || colon == std::string::npos) return {};
  std::string list = type.substr(colon + 1);
  if (list.starts_with('{') && list.ends_with('}')) list = list.substr(1, list.size() - 2);
  std::replace(list.begin(), list.end(), '|', ',');
  std::vector<std::string> values = CLI::detail::split(list, ',');
  const bool plain = std::all_of(values.begin(), values.end(), [](const std::string& value) {
    return !value.empty() &&
           value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_") ==
               std::string::npos;
  });
  std::erase_if(values, [](const std::string& value) { return value.find(':') != std::string::npos; });
  return plain && values.size() > 1 ? values : std::vector<std::string>{};
}

/// The first line of a description.
std::string short_words(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The text with a backslash before each of these characters.
std::string escaped(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string bash(const CLI::App& program) {
  std::string verbs, cases, values;
  for (const CLI::App* verb : verbs_of(program)) {
    verbs += " " + verb->get_name();
    std::string words;
    for (const CLI::Option* option : options_of(*verb)) {
      words += fmt::format(" {}", fmt::join(names_of(*option), " "));
      if (values_of(*option).empty()) continue;
      for (const std::string& name : names_of(*option))
        values += fmt::format("    \"{} {}\") values=\"{}\" ;;\n", verb->get_name(), name,
                              fmt::join(values_of(*option), " "));
    }
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb->get_name(), words.substr(1));
  }
  return fmt::format(R"(# bash completion of attsvm
_attsvm() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="" values=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}    *) ;;
  esac
  if [ -n "$values" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
    return
  fi
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
  esac
}}
complete -o default -F _attsvm attsvm
)",
                     verbs.substr(1), cases, values);
}

/// What zsh offers after an option.
std::string zsh_value(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::vector<std::string> values = values_of(option);
  return values.empty() ? ":value:_files"
                        : fmt::format(":value:({})", escaped(fmt::format("{}", fmt::join(values, " ")), ":"));
}

std::string zsh(const CLI::App& program) {
  std::string verbs, cases;
  for (const CLI::App* verb : verbs_of(program)) {
    verbs += fmt::format("    '{}:{}'\n", verb->get_name(), escaped(short_words(verb->get_description()), "':"));
    cases += fmt::format("    {}) _arguments", verb->get_name());
    for (const CLI::Option* option : options_of(*verb)) {
      const std::string words = escaped(short_words(option->get_description()), "[]:\"`$\\");
      for (const std::string& name : names_of(*option))
        cases += fmt::format(" \\\n      \"{}[{}]{}\"", name, words, zsh_value(*option));
    }
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef attsvm
_attsvm() {{
  local -a verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$verb" in
{}  esac
}}
_attsvm "$@"
)",
                     verbs, cases);
}

/// What fish offers after an option: its values, or files.
std::string fish_value(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::vector<std::string> values = values_of(option);
  return values.empty() ? " -r" : fmt::format(" -x -a '{}'", fmt::join(values, " "));
}

std::string fish(const CLI::App& program) {
  std::string text = "# fish completion of attsvm\n";
  for (const CLI::App* verb : verbs_of(program)) {
    text += fmt::format("complete -c attsvm -n __fish_use_subcommand -f -a {} -d '{}'\n", verb->get_name(),
                        escaped(verb->get_description(), "'\\"));
  }
  for (const CLI::App* verb : verbs_of(program)) {
    for (const CLI::Option* option : options_of(*verb)) {
      std::string names;
      for (const std::string& name : option->get_snames()) names += " -s " + name;
      for (const std::string& name : option->get_lnames()) names += " -l " + name;
      text += fmt::format("complete -c attsvm -n '__fish_seen_subcommand_from {}'{}{} -d '{}'\n", verb->get_name(),
                          names, fish_value(*option), escaped(short_words(option->get_description()), "'\\"));
    }
  }
  return text;
}

/// Text of a manual page: no character that roff would read as a command.
std::string roff(const std::string& text) {
  std::string out;
  for (const std::string& line : CLI::detail::split(text, '\n')) {
    const std::string words = escaped(line, "\\-");
    out += (words.starts_with('.') || words.starts_with('\'') ? "\\&" : "") + words + '\n';
  }
  return out;
}

/// One page with all verbs.
std::string manual(const CLI::App& program) {
  std::string text =
      fmt::format(".TH ATTSVM 1 \"\" \"attsvm {}\"\n.SH NAME\n{}.SH SYNOPSIS\n.B attsvm\nVERB [OPTIONS] ...\n",
                  ATTSVM_VERSION, roff("attsvm - " + program.get_description().substr(8)));
  text += ".SH VERBS\n";
  for (const CLI::App* verb : verbs_of(program)) {
    text += fmt::format(".SS \"attsvm {}\"\n{}", verb->get_name(), roff(verb->get_description()));
    for (const CLI::Option* option : verb->get_options()) {
      const std::string names =
          option->get_lnames().empty() ? option->get_name(true) : fmt::format("{}", fmt::join(names_of(*option), ", "));
      text += fmt::format(".TP\n.B {}{}", roff(names), roff(option->get_description()));
    }
    text += fmt::format(".PP\n.nf\n{}.fi\n", roff(verb->get_footer()));
  }
  return text + fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", roff(program.get_footer()));
}

using Writer = std::string (*)(const CLI::App& program);
const std::vector<std::pair<std::string, Writer>>& writers() {
  static const std::vector<std::pair<std::string, Writer>> list{
      {"bash", bash}, {"zsh", zsh}, {"fish", fish}, {"man", manual}};
  return list;
}

}  // namespace

void add_completion(CLI::App& program, Session& session) {
  auto kind = std::make_shared<std::string>();
  CLI::App* verb = session.add_verb(
      program, "completion", "Print completions for bash, zsh or fish, or the manual page", R"(Examples:
  source <(attsvm completion bash)                       in this shell, from now on
  attsvm completion fish > ~/.config/fish/completions/attsvm.fish
  attsvm completion man | man -l -                       read the manual page
cmake --install puts all of them where the shells and man look for them.)",
      [&program, &session, kind] {
        std::vector<std::string> known;
        for (const auto& [name, writer] : writers()) {
          known.push_back(name);
          if (name != *kind) continue;
          const std::string text = writer(program);
          if (session.json) {
            Session::print_json("completion", 0, {{"kind", name}, {"text", text}});
          } else {
            fmt::print("{}", text);
          }
          return kDone;
        }
        throw InputError(fmt::format("unknown shell '{}'; {}", *kind, suggestion(*kind, known)));
      });
  verb->add_option("KIND", *kind, "bash, zsh, fish or man")->required();
}

}  // namespace attsvm::internal
