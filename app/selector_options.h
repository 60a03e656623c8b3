#pragma once

#include "options.h"

namespace attsvm::internal {

/// Adds --selector, --concentration, --entropy and --temperature; the text of the last goes to `temperature`.
void add_selector(CLI::App* verb, TrainSettings& settings, std::string& temperature);

/// "T", or "T1:T2".
std::array<double, 2> parse_temperature(const std::string& text);

}  // namespace attsvm::internal
