#pragma once

#include "attsvm/theory.h"
#include "report/answer.h"

namespace attsvm::internal {

/// Solutions that a run is compared with.
struct Compared {
  std::span<const Answer> answers;
  bool shown;  ///< they are the solutions of the page
};

/// At most `most` evenly spread numbers of 0 … count−1, including the last and, unless it is alone, the first.
std::vector<std::size_t> spread(std::size_t count, std::size_t most);

/// The points of a run that a page shows, evenly thinned where they are many, and what every page says about them.
class RunCurves {
 public:
  explicit RunCurves(const ReportRun& given);

  const std::vector<ConstRows>& points() const { return points_; }

  /// File, settings, steps, norm, loss, gradient, singular values, and ρ in each norm.
  Json json(const std::optional<ImpliedNorm>& implied, std::span<const MarginShares> shares) const;
  /// With every solution that has a W.
  Json correlations(const Compared& compared) const;
  /// With something else; `all` has an entry per recorded point of the file.
  Json correlation(const std::string& label, const std::vector<double>& all) const;
  /// What a run that trains a selector is judged by at every point: the mean entropy of its attention, the share of
  /// queries whose heaviest token has the label's sign, and, if it is not always 1, the temperature.
  Json selecting(const AttentionTask& task, Threads& threads) const;
  /// The shown entries of a list with an entry per recorded point of the file; null if it is empty.
  Json shown(const std::vector<double>& all) const { return part_of(all); }

 private:
  template <class T>
  Json part_of(const std::vector<T>& list) const;
  Json shares_json(std::span<const MarginShares> shares) const;
  Json spectra() const;

  const ReportRun& given_;
  std::vector<std::size_t> record_;  // which of the file's points are shown; empty where it recorded none
  std::vector<ConstRows> points_;
};

}  // namespace attsvm::internal
