#pragma once

#include <string>

#include "study/sweep_plan.h"

namespace attsvm::internal {

/// A setting's value as tables and legends show it.
std::string text_of(const Json& value);

/// The column of a sweep's table that has the mean of measure m; standard deviation and count follow it.
std::size_t measure_column(const SweepPlan& plan, std::size_t m);

/// One panel per measure against the setting x. Of the other varied settings the first is the colour, the others
/// together are the dash pattern.
Figure sweep_figure(const SweepPlan& plan, const Table& table);

}  // namespace attsvm::internal
