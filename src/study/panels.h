#pragma once

#include <string>
#include <utility>
#include <vector>

#include "study/samples.h"
#include "study/study.h"

namespace attsvm::internal {

// Curves and panels that several studies draw.

/// List `y` of a result against list `x`.
Curve curve_of(const Json& result, const std::string& x, const std::string& y, std::string label, int style);

/// A mean over runs against steps, without step 0, which a logarithmic axis cannot show.
Curve mean_over_steps(const MeanCurve& mean, const std::vector<Index>& steps, std::string label, int style);

/// A line from the origin in a direction of the plane, a pair of numbers.
Curve ray(std::string label, int style, const Json& direction, double length);

/// A path in the plane.
Panel plane(std::string title, std::pair<double, double> x_range, std::pair<double, double> y_range);

inline constexpr const char* kSizeLabel = "size d of tokens and queries";

/// Something against steps, on a logarithmic axis from 1 to `last` (0: as far as the curves go).
Panel over_steps(std::string title, std::string y_label, double last = 0);

/// The same for 1 − correlation, on two logarithmic axes.
Panel distance_over_steps(std::string title, double last = 0);

/// The names of the two arithmetics in figures and tables.
std::string arithmetic_words(const std::string& name);

}  // namespace attsvm::internal
