#include "report/run_curves.h"

#include <algorithm>
#include <cmath>

#include "attsvm/selector.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kRecords = 200;  // most recorded points shown
constexpr double kSpectrumWork = 2e9;  // above it, only the singular values of the last point are computed

std::vector<double> in_tens(std::vector<double> logs) {
  for (double& log : logs) log /= std::log(10.0);
  return logs;
}

Json curve_json(const std::string& label, const Json& solution, const Json& norm, const std::vector<double>& values) {
  std::vector<double> distances(values.size());
  std::transform(values.begin(), values.end(), distances.begin(), [](double value) { return 1 - value; });
  return {{"label", label}, {"solution", solution}, {"norm", norm}, {"values", values}, {"distances", distances}};
}

/// The norm that theory names for the optimizer, and the optimizer; null if it names none.
Json implied_json(const std::optional<ImpliedNorm>& implied, const StoredRun& run) {
  const auto rule = rule_from_words(run.settings);
  if (!implied || !rule) return nullptr;
  return {{"optimizer", optimizer_text(*rule)},
          {"norm", implied->norm.name()},
          {"proven", implied->proven},
          {"why", implied->why}};
}

}  // namespace

/// At most `most` evenly spread numbers of 0 … count−1, including the last and, unless it is alone, the first.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  if (most == 1) return {count - 1};
  std::vector<std::size_t> list(std::min(count, most));
  for (std::size_t k = 0; k < list.size(); ++k)
    list[k] = list.size() == count ? k : k * (count - 1) / (list.size() - 1);
  return list;
}

RunCurves::RunCurves(const ReportRun& given) : given_(given) {
  const StoredRun& run = given.run;
  if (run.record.empty()) {
    points_.emplace_back(run.W.data(), run.W.rows(), run.W.cols());
    return;
  }
  record_ = spread(run.record.size(), kRecords);
  for (const std::size_t k : record_) points_.push_back(run.record[k]);
}

template <class T>
Json RunCurves::part_of(const std::vector<T>& list) const {
  if (list.empty()) return nullptr;
  Json part = Json::array();
  for (const std::size_t k : record_) part.push_back(list[k]);
  return part;
}

Json RunCurves::json(const std::optional<ImpliedNorm>& implied, std::span<const MarginShares> shares) const {
  const StoredRun& run = given_.run;
  std::vector<double> norms;
  for (const ConstRows& point : points_) norms.push_back(point.stableNorm());
  return {{"file", given_.file},
          {"settings", run.settings.empty() ? Json(nullptr) : Json(run.settings)},
          {"records", run.record.size()},
          {"step", part_of(run.record_step)},
          {"norm", norms},
          {"loss", part_of(run.record_loss)},
          {"log10_gradient", part_of(in_tens(run.record_log_gradient))},
          {"implied", implied_json(implied, run)},
          {"shares", shares_json(shares)},
          {"singular_values", spectra()}};
}

Json RunCurves::correlations(const Compared& compared) const {
  Json list = Json::array();
  for (std::size_t k = 0; k < compared.answers.size(); ++k) {
    const Answer& answer = compared.answers[k];
    if (!answer.has_W()) continue;
    std::vector<double> values;
    for (const ConstRows& point : points_) values.push_back(attsvm::correlation(point, answer.stored.W));
    list.push_back(curve_json(answer.label(), compared.shown ? Json(k) : Json(nullptr), answer.stored.norm, values));
  }
  return list;
}

Json RunCurves::correlation(const std::string& label, const std::vector<double>& all) const {
  std::vector<double> values;
  for (const std::size_t k : record_) values.push_back(all[k]);
  return curve_json(label, nullptr, nullptr, values);
}

Json RunCurves::selecting(const AttentionTask& task, Threads& threads) const {
  std::vector<double> entropy, accuracy, temperature;
  Head head = task.head();
  for (std::size_t k = 0; k < points_.size(); ++k) {
    const AttentionMap map = attention_map(task, points_[k], threads);
    if (given_.run.record_v.size() > 0) head.v = given_.run.record_v.row(static_cast<Index>(record_[k]));
    entropy.push_back(task.next_token() ? mean_entropy(task, points_[k], threads) : mean_entropy(map));
    accuracy.push_back(hard_selection(task, head, Loss::logistic, map).accuracy);
  }
  const auto rule = rule_from_words(given_.run.settings);
  if (rule && rule->temperature != TrainSettings{}.temperature) {
    for (const std::size_t k : record_) temperature.push_back(scheduled_temperature(*rule, given_.run.record_step[k]));
  }
  return {{"entropy", entropy},
          {"accuracy", accuracy},
          {"temperature", temperature.empty() ? Json(nullptr) : Json(temperature)}};
}

Json RunCurves::shares_json(std::span<const MarginShares> shares) const {
  Json list = Json::array();
  for (const MarginShares& one : shares) {
    std::vector<double> rho = one.rho, distances;
    if (!record_.empty()) {
      std::transform(record_.begin(), record_.end(), rho.begin(), [&](std::size_t k) { return one.rho[k]; });
      rho.resize(record_.size());
    }
    for (const double share : rho) distances.push_back(1 - share);
    list.push_back({{"norm", one.norm.name()},
                    {"status", name_of(one.status)},
                    {"rho", rho},
                    {"distances", distances},
                    {"rises", one.trend.rises ? Json(*one.trend.rises) : Json(nullptr)},
                    {"exponent", one.trend.exponent}});
  }
  return list;
}

Json RunCurves::spectra() const {
  const auto d = static_cast<double>(given_.run.W.rows()), dz = static_cast<double>(given_.run.W.cols());
  const bool all = static_cast<double>(points_.size()) * d * dz * std::min(d, dz) <= kSpectrumWork;
  Json list = Json::array();
  for (std::size_t k = 0; k < points_.size(); ++k) {
    list.push_back(all || k + 1 == points_.size() ? spectrum_json(points_[k]) : Json(nullptr));
  }
  return list;
}

}  // namespace attsvm::internal
