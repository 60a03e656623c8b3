#include "study/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attsvm/version.h"
#include "base/refuse.h"

namespace attsvm::internal {
namespace {

/// Raise by one with every change that gives a study other numbers from the same settings and seed: rows stored before
/// are then not reused.
constexpr int kNumbers = 8;

/// How many draws `missing` more accepted runs will take, estimated from those accepted so far.
double draws_expected(const StudyCell& cell, Index accepted, Index draws, Index missing) {
  constexpr double kTrust = 20;  // weight of the cell's expected acceptance, in draws
  const double rate =
      (static_cast<double>(accepted) + kTrust * cell.acceptance) / (static_cast<double>(draws) + kTrust);
  return static_cast<double>(missing) / std::max(rate, 1e-6);
}

Index most_draws(const StudyCell& cell, Index wanted) {
  constexpr Index kAllInstances = std::numeric_limits<std::uint32_t>::max();
  const Index there = cell.most_runs > 0 ? cell.most_runs : kAllInstances;
  return cell.draws_per_run == 0 ? there : std::min(there, cell.draws_per_run * wanted);
}

double cost_ahead(const StudyCell& cell, Index accepted, Index draws, Index wanted) {
  const double expected = draws_expected(cell, accepted, draws, wanted - accepted);
  return cell.cost * std::min(expected, static_cast<double>(most_draws(cell, wanted) - draws));
}

}  // namespace

Index CellRows::accepted() const {
  return std::count_if(rows.begin(), rows.end(), [](const StudyRow& row) { return row.accepted(); });
}

std::vector<const Json*> CellRows::results() const {
  std::vector<const Json*> results;
  for (const StudyRow& row : rows) {
    if (row.accepted()) results.push_back(&row.result);
  }
  return results;
}

/// A cell, and which of its instances are done or handed out.
struct StudyRunner::Work {
  const Study* study;
  CellRows got;                     // rows 0, 1, … without a gap
  std::map<Index, StudyRow> ahead;  // rows beyond a gap
  Index enough = 0, most = 0;       // accepted runs wanted, and the draws they may take
  Index accepted = 0;               // of all these rows
  Index handed = 0;                 // instances below this one are there or handed out
  Index computing = 0;              // handed out and not there
  Index had = 0;                    // rows that the store had
  std::int64_t set = -1;            // in the store; −1: not opened yet
  std::uint64_t mark = 0;           // of this cell and the seed

  Index rows() const { return std::ssize(got.rows) + std::ssize(ahead); }
  bool complete() const { return set >= 0 && (got.complete || std::ssize(got.rows) >= most); }
  double cost_left() const { return complete() ? 0 : cost_ahead(got.cell, accepted, rows(), enough); }

  void add(Index instance, StudyRow row) {
    accepted += row.accepted() ? 1 : 0;
    ahead.insert_or_assign(instance, std::move(row));
  }
  void close_gaps() {
    for (auto next = ahead.begin(); next != ahead.end() && next->first == std::ssize(got.rows); next = ahead.begin()) {
      got.rows.push_back(std::move(next->second));
      ahead.erase(next);
    }
    got.complete = got.accepted() >= enough;
  }
};

namespace {

struct Portion {
  std::size_t cell = 0;  // among those of all studies
  Index first = 0, count = 0;
  std::uint64_t mark = 0;  // of the cell and the seed
};

/// FNV-1a of what rows depend on. Ranks make their cells from files of their own, which may not be the same.
std::uint64_t mark_of(const Study& study, const StudyCell& cell, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : Json::array({study.facts().name, cell.settings, seed}).dump())
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::string to_text(const Portion& portion) {
  return Json::array({portion.cell, portion.first, portion.count, portion.mark}).dump();
}

Portion portion_of(const std::string& text) {
  const Json numbers = Json::parse(text);
  return {numbers.at(0), numbers.at(1), numbers.at(2), numbers.at(3)};
}

/// Text, so that rows are the same whether they come from here, from another rank or from the store.
std::string to_text(const std::vector<StudyRow>& rows) {
  Json list = Json::array();
  for (const StudyRow& row : rows) list.push_back(Json::array({row.rejection, row.result}));
  return list.dump();
}

std::vector<StudyRow> rows_of(const std::string& text) {
  std::vector<StudyRow> rows;
  for (Json& pair : Json::parse(text)) rows.push_back({pair[0].get<std::string>(), std::move(pair[1])});
  return rows;
}

}  // namespace

StudyRunner::StudyRunner(RunStore& store, std::uint64_t seed, const StudyOptions& options, Threads& threads,
                         Ranks& crew)
    : store_(store),
      seed_(seed),
      options_(options),
      crew_(crew),
      portions_(crew, [this, &threads](const std::string& text) {
        const Portion portion = portion_of(text);
        const Work& work = work_[portion.cell];
        return to_text(work.study->run(work.got.cell, {seed_, portion.first, portion.count}, threads));
      }) {}

StudyRunner::~StudyRunner() = default;

Index StudyRunner::wanted(const StudyCell& cell) const {
  const Index asked = options_.runs > 0 ? options_.runs : cell.runs;
  return cell.most_runs > 0 ? std::min(asked, cell.most_runs) : asked;
}

void StudyRunner::announce(const Study& study) {
  for (StudyCell& cell : study.cells()) {
    const Index enough = wanted(cell), most = most_draws(cell, enough);
    const std::uint64_t mark = mark_of(study, cell, seed_);
    work_.push_back({.study = &study, .got = {.cell = std::move(cell)}, .enough = enough, .most = most, .mark = mark});
  }
}

void StudyRunner::open(Work& work) {
  if (work.set >= 0) return;
  work.set = store_.find({.experiment = work.study->facts().name,
                          .settings = work.got.cell.settings.dump(),
                          .version = fmt::format("{}, numbers {}", ATTSVM_VERSION, kNumbers),
                          .seed = seed_});
  if (options_.resume) {
    for (auto& [instance, row] : store_.instances(work.set)) work.add(instance, std::move(row));
    work.close_gaps();
    work.had = work.rows();
  } else {
    store_.forget(work.set);
  }
}

std::optional<std::string> StudyRunner::next_portion() {
  for (std::size_t k = now_; k < work_.size(); ++k) {
    Work& work = work_[k];
    open(work);
    if (work.complete()) continue;
    work.handed = std::max(work.handed, std::ssize(work.got.rows));
    auto after = work.ahead.lower_bound(work.handed);
    for (; after != work.ahead.end() && after->first == work.handed; ++after) ++work.handed;
    const bool gap = after != work.ahead.end();
    const Index until = gap ? std::min(after->first, work.most) : work.most;

    // Rows are functions of their instance, so the sizes of portions do not affect which rows are kept.
    const double expected =
        std::ceil(draws_expected(work.got.cell, work.accepted, work.rows(), work.enough - work.accepted));
    const Index missing = gap ? until - work.handed : static_cast<Index>(std::min(expected, 1e6)) - work.computing;
    Index count = std::min({missing, work.study->batch(), until - work.handed});
    if (crew_.count() > 1) {  // several for each rank, so that all end at about the same time
      constexpr Index kEach = 3, kLanes = 8;
      const Index share = (missing + kEach * crew_.count() - 1) / (kEach * crew_.count());
      count = std::min(count, std::max(share, kLanes));
    }
    if (count <= 0) continue;
    const Portion portion{k, work.handed, count, work.mark};
    work.handed += count;
    work.computing += count;
    if (working_since_ < 0) working_since_ = limit_.seconds();
    return to_text(portion);
  }
  return std::nullopt;
}

void StudyRunner::take(const std::string& portion, const std::string& result) {
  const Portion done = portion_of(portion);
  Work& work = work_[done.cell];
  std::vector<StudyRow> rows = rows_of(result);
  store_.commit(work.set, static_cast<std::uint32_t>(done.first), rows);
  work.computing -= done.count;
  cost_done_ += work.got.cell.cost * static_cast<double>(done.count);
  for (std::size_t k = 0; k < rows.size(); ++k) work.add(done.first + static_cast<Index>(k), std::move(rows[k]));
  work.close_gaps();
}

std::vector<CellRows> StudyRunner::collect(const Study& study, Index& reused) {
  std::size_t end = now_;
  while (end < work_.size() && work_[end].study == &study) ++end;
  const std::size_t begin = now_;
  const auto take_it = [&](const std::string& portion, const std::string& result) { take(portion, result); };
  portions_.run({.next = [&] { return next_portion(); },
                 .done = take_it,
                 .over =
                     [&] {
                       for (; now_ < end; ++now_) {
                         open(work_[now_]);
                         if (!work_[now_].complete()) return should_stop();
                       }
                       return true;
                     }});
  if (stop_ == StudyStop::time_limit) portions_.finish(take_it);
  now_ = end;

  std::vector<CellRows> all;
  for (std::size_t k = begin; k < end; ++k) {
    Work& work = work_[k];
    open(work);
    CellRows& got = work.got;
    // An earlier call may have asked for more, and a portion may go beyond the last run that is needed.
    Index kept = 0, seen = 0;
    while (kept < std::ssize(got.rows) && kept < work.most && seen < work.enough)
      seen += got.rows[static_cast<std::size_t>(kept++)].accepted() ? 1 : 0;
    got.rows.resize(static_cast<std::size_t>(kept));
    got.complete = seen == work.enough || kept == work.most;
    reused += std::min(work.had, kept);
    all.push_back(got);
  }
  return all;
}

bool StudyRunner::should_stop() {
  if (stop_ != StudyStop::finished) return true;
  const Work& work = work_[now_];
  if (options_.progress) {
    double left = 0;
    for (std::size_t k = now_; k < work_.size(); ++k) left += work_[k].cost_left();
    const double now = limit_.seconds(), total = cost_done_ + left;
    const double seconds_left =
        cost_done_ > 0 ? left * (now - working_since_) / cost_done_ : std::numeric_limits<double>::quiet_NaN();
    if (options_.progress({.study = work.study->facts().name,
                           .cell = work.got.cell.name,
                           .done = work.got.accepted(),
                           .wanted = work.enough,
                           .draws = std::ssize(work.got.rows),
                           .share = total > 0 ? cost_done_ / total : 0,
                           .seconds = now,
                           .seconds_left = seconds_left})) {
      stop_ = StudyStop::asked;
    }
  }
  if (stop_ == StudyStop::finished && limit_.over()) stop_ = StudyStop::time_limit;
  return stop_ != StudyStop::finished;
}

void help_studies(const std::vector<const Study*>& studies, std::uint64_t seed, Threads& threads, Ranks& crew) {
  std::vector<std::pair<const Study*, StudyCell>> cells;
  for (const Study* study : studies) {
    for (StudyCell& cell : study->cells()) cells.emplace_back(study, std::move(cell));
  }
  constexpr const char* kOther = "the settings or the seed here are not those of rank 0; are the files the same?";
  crew.help([&](const std::string& text) {
    const Portion portion = portion_of(text);
    if (portion.cell >= cells.size()) refuse("{}", kOther);
    const auto& [study, cell] = cells[portion.cell];
    if (portion.mark != mark_of(*study, cell, seed)) refuse("{}", kOther);
    return to_text(study->run(cell, {seed, portion.first, portion.count}, threads));
  });
}

}  // namespace attsvm::internal
