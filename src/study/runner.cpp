#include "study/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attsvm/version.h"

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

StudyRunner::StudyRunner(RunStore& store, std::uint64_t seed, const StudyOptions& options, Threads& threads)
    : store_(store), seed_(seed), options_(options), threads_(threads) {}

Index StudyRunner::wanted(const StudyCell& cell) const {
  const Index asked = options_.runs > 0 ? options_.runs : cell.runs;
  return cell.most_runs > 0 ? std::min(asked, cell.most_runs) : asked;
}

void StudyRunner::announce(const Study& study) {
  for (const StudyCell& cell : study.cells()) cost_ahead_ += cost_ahead(cell, 0, 0, wanted(cell));
}

std::vector<CellRows> StudyRunner::collect(const Study& study, Index& reused) {
  std::vector<CellRows> all;
  for (StudyCell& cell : study.cells()) {
    cost_ahead_ -= cost_ahead(cell, 0, 0, wanted(cell));
    all.push_back({.cell = std::move(cell)});
    collect(study, all.back(), reused);
  }
  return all;
}

void StudyRunner::collect(const Study& study, CellRows& rows, Index& reused) {
  const StudyCell& cell = rows.cell;
  const Index enough = wanted(cell), most = most_draws(cell, enough);
  const std::int64_t set = store_.find({.experiment = study.facts().name,
                                        .settings = cell.settings.dump(),
                                        .version = fmt::format("{}, numbers {}", ATTSVM_VERSION, kNumbers),
                                        .seed = seed_});
  if (options_.resume) {
    rows.rows = store_.rows(set);
  } else {
    store_.forget(set);
  }
  const auto had = static_cast<Index>(rows.rows.size());

  // Rows are functions of their instance, so batch sizes do not affect which rows are kept below.
  Index accepted = rows.accepted();
  while (accepted < enough && static_cast<Index>(rows.rows.size()) < most) {
    if (should_stop(study, rows, enough)) break;
    const auto first = static_cast<Index>(rows.rows.size());
    const double expected = std::ceil(draws_expected(cell, accepted, first, enough - accepted));
    const Index count = std::min({static_cast<Index>(std::min(expected, 1e6)), study.batch(), most - first});
    const double began = limit_.seconds();
    std::vector<StudyRow> batch = study.run(cell, {seed_, first, count}, threads_);
    store_.commit(set, static_cast<std::uint32_t>(first), batch);
    seconds_working_ += limit_.seconds() - began;
    cost_done_ += cell.cost * static_cast<double>(count);
    for (StudyRow& row : batch) {
      accepted += row.accepted() ? 1 : 0;
      rows.rows.push_back(std::move(row));
    }
  }

  // An earlier call may have asked for more, and a batch may go beyond the last run that is needed.
  Index kept = 0, seen = 0;
  while (kept < static_cast<Index>(rows.rows.size()) && kept < most && seen < enough) {
    seen += rows.rows[static_cast<std::size_t>(kept++)].accepted() ? 1 : 0;
  }
  rows.rows.resize(static_cast<std::size_t>(kept));
  rows.complete = seen == enough || kept == most;
  reused += std::min(had, kept);
}

bool StudyRunner::should_stop(const Study& study, const CellRows& rows, Index enough) {
  if (stop_ != StudyStop::finished) return true;
  const Index accepted = rows.accepted(), draws = static_cast<Index>(rows.rows.size());
  if (options_.progress) {
    const double left = cost_ahead_ + cost_ahead(rows.cell, accepted, draws, enough);
    const double now = limit_.seconds(), total = cost_done_ + left;
    const double seconds_left =
        cost_done_ > 0 ? left * seconds_working_ / cost_done_ : std::numeric_limits<double>::quiet_NaN();
    if (options_.progress({.study = study.facts().name,
                           .cell = rows.cell.name,
                           .done = accepted,
                           .wanted = enough,
                           .draws = draws,
                           .share = total > 0 ? cost_done_ / total : 0,
                           .seconds = now,
                           .seconds_left = seconds_left})) {
      stop_ = StudyStop::asked;
    }
  }
  if (stop_ == StudyStop::finished && limit_.over()) stop_ = StudyStop::time_limit;
  return stop_ != StudyStop::finished;
}

}  // namespace attsvm::internal
