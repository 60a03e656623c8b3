#include "study/claim_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "attsvm/files.h"
#include "attsvm/version.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "io/npz_writer.h"
#include "io/run_store.h"
#include "ranks/portions.h"

namespace attsvm::internal {
namespace {

/// Raise by one with every change that gives a claim other numbers from the same tasks and seed: batches stored before
/// are then not reused.
constexpr int kNumbers = 1;

// A portion is a claim, and what its batches left so far; its result is what the next batches left, a slice of them.
// A slice ends after so many seconds, or this many times what it took to read the earlier batches, if that is more.
constexpr double kSlice = 0.25, kReading = 10;

/// Numbers as text, infinity and NaN included, which JSON does not have; they read back exactly.
std::string to_text(const std::vector<double>& numbers) { return fmt::format("{}", fmt::join(numbers, " ")); }

/// nullopt if the text is not a list of numbers.
std::optional<std::vector<double>> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || (next != end && *next != ' ')) return std::nullopt;
    at = next == end ? end : next + 1;
  }
  return numbers;
}

/// The same of text that to_text() made here or on another rank.
std::vector<double> known_numbers(std::string_view text) {
  if (auto numbers = numbers_of(text)) return *std::move(numbers);
  throw std::logic_error("a rank's numbers cannot be read");
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

/// nullopt if the text is not bytes in hexadecimal.
std::optional<std::string> bytes_of(std::string_view hex) {
  std::string bytes;
  for (; hex.size() >= 2; hex.remove_prefix(2)) {
    unsigned byte = 0;
    if (std::from_chars(hex.data(), hex.data() + 2, byte, 16).ptr != hex.data() + 2) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return hex.empty() ? std::optional(bytes) : std::nullopt;
}

std::string file_of(const CounterExample& example) {
  NamedArrays arrays = task_arrays(example.task);
  arrays.insert(arrays.end(), example.extras.begin(), example.extras.end());
  return npz_bytes(arrays);
}

/// What a batch left, as the store and ranks have it.
Json to_json(const ClaimBatch& batch, const CounterExample* worst, double seconds) {
  Json row{{"numbers", to_text(batch)}, {"seconds", seconds}};
  if (worst != nullptr) row.update({{"words", worst->words}, {"task", to_hex(file_of(*worst))}});
  return row;
}

/// A claim, what its batches left so far, and what is known of it.
struct Work {
  TestedClaim known{};
  std::int64_t set = -1;               // in the store; −1: not opened yet
  std::vector<std::string> batches{};  // numbers as text
  bool handed = false;                 // someone goes on with it

  /// Adds the row of the next batch. False: it is not such a row.
  bool add(const Json& row) {
    const auto text = [&](const char* name) -> const std::string* {
      return row.is_object() && row.contains(name) ? row.at(name).get_ptr<const std::string*>() : nullptr;
    };
    const std::string *numbers = text("numbers"), *words = text("words"), *task = text("task");
    if (numbers == nullptr || !row.contains("seconds") || !row.at("seconds").is_number()) return false;
    if (!numbers_of(*numbers) || (words == nullptr) != (task == nullptr)) return false;
    if (words != nullptr) {
      const auto bytes = bytes_of(*task);
      if (!bytes) return false;
      known.words = *words;
      known.example = *bytes;
    }
    known.seconds += row.at("seconds").get<double>();
    batches.push_back(*numbers);
    return true;
  }
};

/// Goes on with a claim for a while, on any rank.
class Slices {
 public:
  Slices(std::span<const Claim* const> claims, const ClaimsOptions& options, Threads& threads, bool alone)
      : claims_(claims), options_(options), threads_(threads), alone_(alone) {}

  std::string run(const std::string& portion) {
    const TimeLimit watch(0);
    const Json given = Json::parse(portion);
    std::vector<ClaimBatch> done;
    for (const Json& numbers : given.at(1)) done.push_back(known_numbers(numbers.get_ref<const std::string&>()));
    const double reading = watch.seconds();
    const auto at = given.at(0).get<std::size_t>();
    const Claim& claim = *claims_[at];
    Json rows = Json::array();
    double before = reading;
    ClaimSettings settings{.tasks = options_.tasks, .seed = options_.seed, .time_limit = seconds_left(), .done = done};
    settings.progress = [&](const ClaimProgress& now) {
      if (alone_ && options_.progress)
        options_.progress({static_cast<Index>(at), std::ssize(claims_), &claim, now.done, now.tasks});
      return !rows.empty() && watch.seconds() - reading > std::max(kSlice, kReading * reading);
    };
    settings.stopped = options_.stopped;
    settings.keep = [&](const ClaimBatch& batch, const CounterExample* worst) {
      const double now = watch.seconds();
      rows.push_back(to_json(batch, worst, now - before));
      before = now;
    };
    const ClaimResult result = test(claim, settings);
    Json figures = Json::array();
    for (const ClaimFigure& figure : result.figures) figures.push_back({figure.label, to_text({figure.value})});
    return Json{{"rows", std::move(rows)},      {"tasks", result.tasks},
                {"held", result.held},          {"worst", to_text({result.worst})},
                {"complete", result.complete},  {"seconds", watch.seconds() - before},
                {"figures", std::move(figures)}}
        .dump();
  }

 private:
  double seconds_left() const {
    return options_.time_limit > 0 ? std::max(options_.time_limit - limit_.seconds(), 1e-3) : 0;
  }
  ClaimResult test(const Claim& claim, const ClaimSettings& settings) const {
    try {
      return test_claim(claim, settings, threads_);
    } catch (const InputError& error) {
      if (settings.done.empty()) throw;
      refuse("{}: is damaged: claim '{}': {}; use --no-resume to test it afresh", options_.store, claim.name,
             error.what());
    }
  }

  std::span<const Claim* const> claims_;
  const ClaimsOptions& options_;
  Threads& threads_;
  bool alone_;
  TimeLimit limit_{0};  // for its clock
};

/// Rank 0: which claims are where, and the store.
class ClaimRunner {
 public:
  ClaimRunner(std::span<const Claim* const> claims, const ClaimsOptions& options)
      : options_(options), store_(options.store), limit_(options.time_limit) {
    for (const Claim* claim : claims) work_.push_back({.known = {.claim = claim}});
  }

  std::optional<std::string> next() {
    for (std::size_t k = next_; k < work_.size(); ++k) {
      Work& work = work_[k];
      open(work);
      if (work.handed || work.known.complete) continue;
      work.handed = true;
      return Json::array({k, work.batches}).dump();
    }
    return std::nullopt;
  }

  void take(const std::string& portion, const std::string& result) {
    Work& work = work_[Json::parse(portion).at(0).get<std::size_t>()];
    const Json found = Json::parse(result);
    std::vector<RunRow> rows;
    for (const Json& row : found.at("rows")) rows.push_back({"", row});
    store_.commit(work.set, static_cast<std::uint32_t>(work.batches.size()), rows);
    for (const RunRow& row : rows) work.add(row.result);
    TestedClaim& known = work.known;
    known.tasks = found.at("tasks");
    known.held = found.at("held");
    known.worst = known_numbers(found.at("worst").get<std::string>()).front();
    known.complete = found.at("complete");
    known.seconds += found.at("seconds").get<double>();
    known.figures.clear();
    for (const Json& figure : found.at("figures"))
      known.figures.push_back({figure[0], known_numbers(figure[1].get<std::string>()).front()});
    work.handed = false;
    stopped_ = stopped_ || (rows.empty() && !known.complete);  // whoever had it was told to stop
    for (; next_ < work_.size() && work_[next_].known.complete; ++next_) {
      if (options_.tested) options_.tested(work_[next_].known);
    }
  }

  bool over() {
    stopped_ = stopped_ || limit_.over() || was_told();
    return stopped_ || next_ == work_.size();
  }
  bool was_told() const { return options_.stopped && options_.stopped(); }

  Index complete() const {
    return std::count_if(work_.begin(), work_.end(), [](const Work& work) { return work.known.complete; });
  }
  std::vector<TestedClaim> known() && {
    std::vector<TestedClaim> known;
    for (Work& work : work_) {
      if (work.known.complete || work.known.tasks > 0) known.push_back(std::move(work.known));
    }
    return known;
  }

 private:
  void open(Work& work) {
    if (work.set >= 0) return;
    const Claim& claim = *work.known.claim;
    work.set = store_.find({.experiment = fmt::format("claim {}", claim.name),
                            .settings = Json{{"tasks", options_.tasks > 0 ? options_.tasks : claim.tasks}}.dump(),
                            .version = fmt::format("{}, numbers {}", ATTSVM_VERSION, kNumbers),
                            .seed = options_.seed});
    if (!options_.resume) return store_.forget(work.set);
    for (const RunRow& row : store_.rows(work.set)) {
      if (work.add(row.result)) continue;
      refuse("{}: is damaged: batch {} of claim '{}' is not one; use --no-resume to test it afresh", options_.store,
             work.batches.size(), claim.name);
    }
  }

  const ClaimsOptions& options_;
  RunStore store_;
  TimeLimit limit_;
  std::vector<Work> work_;
  std::size_t next_ = 0;  // the first claim that is not complete
  bool stopped_ = false;
};

}  // namespace

std::vector<TestedClaim> test_claims(std::span<const Claim* const> claims, const ClaimsOptions& options,
                                     Threads& threads, Ranks& crew) {
  require_time_limit(options.time_limit);
  Slices slices(claims, options, threads, crew.count() == 1);
  const auto work = [&](const std::string& portion) { return slices.run(portion); };
  if (!crew.first()) {
    crew.help(work);
    return {};
  }
  ClaimRunner runner(claims, options);
  Portions portions(crew, work);
  const auto take = [&](const std::string& portion, const std::string& result) { runner.take(portion, result); };
  portions.run({.next = [&] { return runner.next(); },
                .done = take,
                .over =
                    [&] {
                      if (crew.count() > 1 && options.progress)
                        options.progress({.done = runner.complete(), .claims = std::ssize(claims)});
                      return runner.over();
                    }});
  if (!runner.was_told()) portions.finish(take);
  return std::move(runner).known();
}

}  // namespace attsvm::internal
