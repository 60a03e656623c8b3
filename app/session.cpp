#include "session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>

#include "base/refuse.h"
#include "io/json.h"

namespace attsvm::internal {

std::string counted(std::int64_t count, const std::string& noun) {
  if (count == 1) return "1 " + noun;
  const bool y = noun.ends_with("ry");  // queries, but arrays
  return fmt::format("{} {}{}", count, y ? noun.substr(0, noun.size() - 1) : noun, y ? "ies" : "s");
}

CLI::App* Session::add_verb(CLI::App& program, const std::string& name, const std::string& summary,
                            const std::string& teaching, std::function<ExitCode()> run) {
  CLI::App* app = program.add_subcommand(name, summary);
  app->footer(teaching);
  app->add_flag("--json", json, "Print one JSON object on stdout and nothing else");
  app->add_flag("--quiet", quiet, "Print no progress and no warnings");
  app->add_option("--threads", threads, "Threads to use (default: all cores)")->check(CLI::Range(1, 1024));
  app->callback([this, run = std::move(run)] { verb = run; });
  return app;
}

void Session::set_device(Threads& pool) const {
  if (device == Device::cuda && !device_report().found)
    throw InputError("--device: cuda, but there is no GPU to use; found " + device_report().words);
  pool.set_device(device);
}

CLI::Option* Session::add_output(CLI::App* verb, std::string& path, bool& force) {
  verb->add_flag("--force", force, "Replace the output file if it exists");
  return verb->add_option("-o,--out", path, "File to write")->check(output_name());
}

namespace {

volatile std::sig_atomic_t stop_requested = 0;

}  // namespace

bool Session::interrupted() { return stop_requested != 0; }

void Session::watch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto before = std::signal(signal, [](int number) {
      if (stop_requested != 0) {  // a second signal ends the program at once
        std::signal(number, SIG_DFL);
        std::raise(number);
      }
      stop_requested = 1;
    });
    if (signal == SIGHUP && before == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup
  }
}

void Session::warn(const std::string& line) const {
  if (!quiet) fmt::print(stderr, "attsvm: {}\n", printable(line));
}

void Session::print_json(const std::string& command, double seconds, const Json& fields) {
  Json object{{"attsvm", ATTSVM_VERSION}, {"command", command}, {"seconds", seconds}};
  object.update(fields);
  fmt::print("{}\n", json_text(object));
}

CLI::Validator output_name() {
  return {[](const std::string& text) {
            return text == "-" ? std::string("- would be stdout, which this cannot write to; give a name")
                               : std::string();
          },
          ""};
}

CLI::Validator positive_number() {
  return {[](const std::string& text) {
            double number = 0;
            return CLI::detail::lexical_cast(text, number) && number > 0 ? std::string()
                                                                         : text + " must be a number above 0";
          },
          "NUMBER > 0"};
}

ProgressLine::ProgressLine(const Session& session) : visible_(!session.quiet && ::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::clear() {
  if (last_ >= 0) fmt::print(stderr, "\r\x1b[K");
  last_ = -1;
}

void ProgressLine::show(double share, const std::function<std::string()>& text) {
  if (!visible_ || watch_.seconds() < last_ + 0.1) return;
  last_ = watch_.seconds();
  if (first_share_ < 0 && !std::isnan(share)) {
    first_share_ = share;
    first_time_ = last_;
  }
  const double seconds_left = (1 - share) * (last_ - first_time_) / (share - first_share_);
  fmt::print(stderr, "\r\x1b[K{}",
             std::isnan(share) ? text()
                               : fmt::format("{:3.0f} %  {}; {} left", std::floor(100 * share), text(),
                                             duration(share > first_share_ ? seconds_left : std::nan(""))));
  std::fflush(stderr);
}

std::string duration(double seconds) {
  if (std::isnan(seconds)) return "…";
  const auto whole = static_cast<long>(std::llround(seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

void print_field(std::string_view label, std::size_t label_width, std::string_view text) {
  for (const std::string& line : wrapped(printable(text), kTerminal - label_width - 4)) {
    fmt::print("  {:<{}}  {}\n", label, label_width, line);
    label = "";
  }
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines{""};
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!lines.back().empty() && lines.back().size() + word.size() >= width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + std::string(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return lines;
}

Json sets_json(const Selection& selection) {
  Json sets = Json::array();
  for (Index i = 0; i < selection.queries(); ++i)
    sets.push_back(std::vector<Index>(selection.kept(i).begin(), selection.kept(i).end()));
  return sets;
}

Json ties_json(const std::vector<Tie>& ties) {
  Json list = Json::array();
  for (const Tie& tie : ties) list.push_back({{"query", tie.query}, {"tokens", tie.tokens}});
  return list;
}

}  // namespace attsvm::internal
