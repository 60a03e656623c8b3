#include "study/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attsvm::internal {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number_of(const Json& result, const std::string& name) {
  const auto found = result.find(name);
  if (found == result.end()) return kNone;
  if (found->is_boolean()) return found->get<bool>() ? 1 : 0;
  return found->is_number() ? found->get<double>() : kNone;
}

}  // namespace

double Sample::error() const { return sd / std::sqrt(static_cast<double>(count)); }

Sample sample_of(std::span<const double> numbers) {
  Sample sample;
  double sum = 0;
  for (const double x : numbers) {
    if (std::isnan(x)) continue;
    sum += x;
    ++sample.count;
  }
  const auto count = static_cast<double>(sample.count);
  sample.mean = sum / count;  // NaN for none
  double squares = 0;
  for (const double x : numbers) {
    if (!std::isnan(x)) squares += (x - sample.mean) * (x - sample.mean);
  }
  sample.sd = sample.count > 1 ? std::sqrt(squares / (count - 1)) : kNone;
  return sample;
}

Sample sample_of(const std::vector<const Json*>& results, const std::string& name) {
  std::vector<double> numbers;
  numbers.reserve(results.size());
  for (const Json* result : results) numbers.push_back(number_of(*result, name));
  return sample_of(numbers);
}

std::string words_of(const Sample& sample) {
  if (sample.count == 0) return "no runs";
  if (sample.count == 1) return fmt::format("{:.4g} (one run)", sample.mean);
  return fmt::format("{:.4g} ± {:.2g} (standard error {:.2g}, {} runs)", sample.mean, sample.sd, sample.error(),
                     sample.count);
}

Json json_list(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double x : numbers) list.push_back(std::isfinite(x) ? Json(x) : Json());
  return list;
}

std::vector<double> numbers_list(const Json& list) {
  std::vector<double> numbers;
  for (const Json& x : list) numbers.push_back(x.is_number() ? x.get<double>() : kNone);
  return numbers;
}

MeanCurve mean_curve(const std::vector<const Json*>& results, const std::string& name) {
  std::vector<std::vector<double>> lists;
  lists.reserve(results.size());
  for (const Json* result : results) lists.push_back(numbers_list(result->at(name)));
  MeanCurve curve;
  for (std::size_t at = 0; !lists.empty() && at < lists.front().size(); ++at) {
    std::vector<double> here;
    here.reserve(lists.size());
    for (const auto& list : lists) here.push_back(list.at(at));
    const Sample sample = sample_of(here);
    const double spread = std::isfinite(sample.sd) ? sample.sd : 0;
    curve.mean.push_back(sample.mean);
    curve.low.push_back(sample.mean - spread);
    curve.high.push_back(sample.mean + spread);
  }
  return curve;
}

void add_steps(const Json& settings, const Json& result, Table& table) {
  for (std::size_t k = 0; k < result.at("step").size(); ++k) {
    Json row = Json::array();
    for (const Column& column : table.columns) {
      const auto found = result.find(column.name);
      row.push_back(found == result.end() ? settings.at(column.name) : found->is_array() ? found->at(k) : *found);
    }
    table.rows.push_back(std::move(row));
  }
}

std::string cell_name(const Size& size, Index d) { return fmt::format("n={} T={} d={}", size.n, size.T, d); }

std::vector<const Json*> rows_of(const Table& table, const Size& size) {
  std::vector<const Json*> rows;
  for (const Json& row : table.rows) {
    if (row[0] == size.n && row[1] == size.T) rows.push_back(&row);
  }
  return rows;
}

}  // namespace attsvm::internal
