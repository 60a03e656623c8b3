#pragma once

#include <array>
#include <string>
#include <vector>

#include "study/variants.h"

namespace attsvm::internal {

// The parts of the atlas: which SVM does an optimizer solve?

/// The norms whose margins are compared, the columns of the matrix.
inline constexpr std::array<const char*, 5> kAtlasNorms{"fro", "max", "spec", "l1", "nuc"};

/// The optimizers of the matrix, its rows.
std::vector<Variant> atlas_rows();
/// Those whose way to the margin of their own norm is drawn. Steps that take a singular value decomposition cost a
/// hundred times as much as the others: they are apart, so that fewer tasks can be run.
std::vector<Variant> atlas_curves(bool decomposed);
/// Adam without ε for many steps and betas, and with ε.
std::vector<Variant> atlas_adam();

/// The name of the norm in which a way of training is expected to maximise the margin; empty if none is named.
std::string own_norm(const TrainSettings& training);

/// Steps at which runs of Adam are measured; each is half of the next one.
std::vector<Index> adam_steps(Index steps);

/// What is kept of a run: its share of the margin in all norms ("shares"); in its own norm along the way ("step",
/// "share"); for Adam the largest margin, the smallest gap and
/// the share along the way ("margin", "gap", "share").
Json measure_matrix(const Variant& one, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected& selected);
Json measure_curve(const Variant& one, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected& selected);
Json measure_adam(const Variant& one, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected& selected);

/// One setting of Adam over all its tasks, at one number of steps.
struct AdamPoint {
  Variant variant;
  std::array<double, 2> betas{};
  double epsilon = 0;
  Index steps = 0;
  Sample share, gap;
  double margin = 0;     ///< mean of the largest margins in the norm of the largest entry
  double growth = 0;     ///< median growth of the smallest gap per step, over the second half of the steps
  double predicted = 0;  ///< the same of AdamPace::growth
  double faded = 0;      ///< median of AdamPace::fading times steps
};
std::vector<AdamPoint> adam_points(const CellRows& rows);

/// The parts of the summary.
Panel matrix_panel(const CellRows& rows);
std::vector<std::vector<std::string>> matrix_overview(const CellRows& rows);  ///< the same for a terminal
Panel curves_panel(const std::vector<const CellRows*>& cells);
std::vector<Panel> adam_panels(const std::vector<AdamPoint>& points);
std::vector<Finding> atlas_findings(const std::vector<CellRows>& matrices, const std::vector<AdamPoint>& adam);

}  // namespace attsvm::internal
