#include "theory/run_shares.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace attsvm::internal {
namespace {

/// The points of a run with what does not depend on the norm.
class SharedPoints {
 public:
  SharedPoints(const RunTrace& run, const MarginProblem& problem) : steps_(run.steps) {
    for (const ConstRows& point : run.record) points_.emplace_back(point);
    if (points_.empty()) points_.push_back(run.W);
    for (const RowMatrix& point : points_) smallest_.push_back(smallest_asked(problem, point));
  }

  MarginShares under(const Norm& norm, const MarginSolution& solution) const {
    MarginShares shares{.norm = norm, .status = solution.status, .rho = std::vector<double>(points_.size(), kNaN)};
    if (solution.status != MarginStatus::optimal) return shares;
    shares.margin = 1 / solution.objective;
    for (std::size_t r = 0; r < points_.size(); ++r) {
      const double size = norm.of(points_[r]);
      if (size > 0) shares.rho[r] = smallest_[r] / size * solution.objective;
    }
    // The optimum is known to the solution's gap; log(1 − ρ) has a digit where 1 − ρ is ten times that.
    const double resolution = 10 * std::max(solution.gap, kEpsilon);
    if (!steps_.empty()) shares.trend = margin_trend(steps_, shares.rho, resolution);
    return shares;
  }

  const std::vector<double>& smallest() const { return smallest_; }

 private:
  std::span<const Index> steps_;
  std::vector<RowMatrix> points_;
  std::vector<double> smallest_;
};

}  // namespace

RunShares shares_along(const RunTrace& run, const MarginProblem& problem, std::span<const MarginSolution* const> known,
                       const std::vector<Norm>& norms, SolveSettings settings, MarginSolver& solver) {
  std::vector<Norm> wanted = norms;
  if (run.implied && std::find(norms.begin(), norms.end(), run.implied->norm) == norms.end())
    wanted.push_back(run.implied->norm);
  const SharedPoints points(run, problem);
  const MarginSolution& frobenius = *known.front();
  RunShares result{.list = std::vector<MarginShares>(wanted.size()), .smallest = points.smallest()};
  const auto fill = [&](std::size_t k) {
    const auto there =
        std::find_if(known.begin(), known.end(), [&](const MarginSolution* one) { return one->norm == wanted[k]; });
    settings.norm = wanted[k];
    // Whether the rows can be met does not depend on the norm.
    const MarginSolution& solution = there != known.end() ? **there
                                     : frobenius.status == MarginStatus::optimal
                                         ? solver.solve(problem, settings, &frobenius)
                                         : frobenius;
    result.list[k] = points.under(wanted[k], solution);
    const bool implied = run.implied && run.implied->norm == wanted[k];
    if (implied && there == known.end() && frobenius.status == MarginStatus::optimal) result.implied = solution;
  };
  // The implied norm comes first, so that a time limit leaves out the others.
  const auto first = run.implied ? std::find(wanted.begin(), wanted.end(), run.implied->norm) : wanted.end();
  const auto implied = static_cast<std::size_t>(first - wanted.begin());
  if (implied < wanted.size()) fill(implied);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (k != implied) fill(k);
  }
  return result;
}

}  // namespace attsvm::internal
