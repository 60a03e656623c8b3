#include "report/run_part.h"

#include <algorithm>
#include <cmath>

#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kRecords = 200;    // most recorded points shown
constexpr Index kPathNumbers = 400'000;  // most numbers of paths, and of attention weights
constexpr Index kMapBytes = 4'000'000;   // most weights of attention maps
constexpr std::size_t kTokens = 12;      // most tokens per query whose weights are shown
constexpr double kSpectrumWork = 2e9;    // above it, only the singular values of the last point are computed

/// At most `most` evenly spread numbers of 0 … count−1, including the last and, unless it is alone, the first.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  if (most == 1) return {count - 1};
  std::vector<std::size_t> list(std::min(count, most));
  for (std::size_t k = 0; k < list.size(); ++k)
    list[k] = list.size() == count ? k : k * (count - 1) / (list.size() - 1);
  return list;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[at])) : 0U;
    };
    const unsigned three = byte(k) << 16U | byte(k + 1) << 8U | byte(k + 2);
    for (std::size_t part = 0; part < 4; ++part)
      text.push_back(k + part <= bytes.size() ? kLetters[three >> (18 - 6 * part) & 63U] : '=');
  }
  return text;
}

class RunPart {
 public:
  RunPart(const AttentionTask& task, const Axes& axes, const ReportRun& given, Threads& threads)
      : task_(task), axes_(axes), given_(given), threads_(threads) {
    if (given.run.record.empty()) {
      points_.emplace_back(given.run.W.data(), given.run.W.rows(), given.run.W.cols());
    } else {
      record_ = spread(given.run.record.size(), kRecords);
      for (const std::size_t k : record_) points_.push_back(given.run.record[k]);
    }
  }

  Json json(const Check& check, const Compared& compared, const Answer* rows_of) const {
    const StoredRun& run = given_.run;
    std::vector<double> norms;
    for (const ConstRows& point : points_) norms.push_back(point.stableNorm());
    return {{"file", given_.file},
            {"settings", run.settings.empty() ? Json(nullptr) : Json(run.settings)},
            {"records", run.record.size()},
            {"verdict", name_of(check.verdict)},
            {"reason", check.reason},
            {"kept", kept(check.selection)},
            {"step", part_of(run.record_step)},
            {"norm", norms},
            {"loss", part_of(run.record_loss)},
            {"log10_gradient", part_of(in_tens(run.record_log_gradient))},
            {"correlations", correlations(check, compared)},
            {"implied", implied(check)},
            {"shares", shares(check)},
            {"singular_values", spectra()},
            {"directions", directions()},
            {"attention", attention(check.selection)},
            {"map", map()},
            {"margins", rows_of != nullptr ? margins(rows_of->stored) : Json(nullptr)}};
  }

 private:
  /// The shown entries of a list with one entry per recorded point; null if the file has none.
  template <class T>
  Json part_of(const std::vector<T>& list) const {
    if (list.empty()) return nullptr;
    Json part = Json::array();
    for (const std::size_t k : record_) part.push_back(list[k]);
    return part;
  }

  static std::vector<double> in_tens(std::vector<double> logs) {
    for (double& log : logs) log /= std::log(10.0);
    return logs;
  }

  static Json kept(const Selection& selection) {
    Json list = Json::array();
    for (Index i = 0; i < selection.queries(); ++i) {
      const auto tokens = selection.kept(i);
      list.push_back(std::vector<Index>(tokens.begin(), tokens.end()));
    }
    return list;
  }

  Json correlations(const Check& check, const Compared& compared) const {
    Json list = Json::array();
    for (std::size_t k = 0; k < compared.answers.size(); ++k) {
      const Answer& answer = compared.answers[k];
      if (!answer.has_W()) continue;
      std::vector<double> values;
      for (const ConstRows& point : points_) values.push_back(correlation(point, answer.stored.W));
      list.push_back(curve_json(answer.label(), compared.shown ? Json(k) : Json(nullptr), answer.stored.norm, values));
    }
    const auto add = [&](const char* label, const std::vector<double>& all) {
      if (all.empty()) return;
      std::vector<double> values;
      for (const std::size_t k : record_) values.push_back(all[k]);
      list.push_back(curve_json(label, nullptr, nullptr, values));
    };
    add("W_{fin} + R W^{mm}", check.correlation_equivalence);
    add("SVM of the largest token alone", check.correlation_single);
    return list;
  }

  static Json curve_json(const std::string& label, const Json& solution, const Json& norm,
                         const std::vector<double>& values) {
    std::vector<double> distances(values.size());
    std::transform(values.begin(), values.end(), distances.begin(), [](double value) { return 1 - value; });
    return {{"label", label}, {"solution", solution}, {"norm", norm}, {"values", values}, {"distances", distances}};
  }

  /// The norm that theory names for the optimizer, and the optimizer; null if it names none.
  Json implied(const Check& check) const {
    const auto rule = rule_from_words(given_.run.settings);
    if (!check.implied || !rule) return nullptr;
    return {{"optimizer", optimizer_text(*rule)},
            {"norm", check.implied->norm.name()},
            {"proven", check.implied->proven},
            {"why", check.implied->why}};
  }

  /// ρ at the shown points, in each norm.
  Json shares(const Check& check) const {
    Json list = Json::array();
    for (const MarginShares& one : check.shares) {
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

  Json spectra() const {
    const auto d = static_cast<double>(task_.key_size()), dz = static_cast<double>(task_.query_size());
    const bool all = static_cast<double>(points_.size()) * d * dz * std::min(d, dz) <= kSpectrumWork;
    Json list = Json::array();
    for (std::size_t k = 0; k < points_.size(); ++k) {
      list.push_back(all || k + 1 == points_.size() ? spectrum_json(points_[k]) : Json(nullptr));
    }
    return list;
  }

  /// One block per point, for as many queries as fit.
  Json directions() const {
    const Index each = static_cast<Index>(points_.size()) * (axes_.count() + 1);
    const Index queries = std::clamp<Index>(kPathNumbers / each, 1, task_.queries());
    Json list = Json::array();
    for (const ConstRows& point : points_) list.push_back(directions_json(task_, axes_, point, queries));
    return list;
  }

  /// For as many queries as fit: the kept tokens and those that ever get much weight, and the sum of the others.
  Json attention(const Selection& selection) const {
    const Index each = static_cast<Index>(points_.size() * (kTokens + 1));
    const Index queries = std::clamp<Index>(kPathNumbers / each, 1, task_.queries());
    std::vector<RowMatrix> logs;  // per point: (queries, T)
    for (const ConstRows& point : points_) logs.emplace_back(log_weights(point).topRows(queries));
    Json list = Json::array();
    for (Index i = 0; i < queries; ++i) list.push_back(query_attention(selection, logs, i));
    return list;
  }

  RowMatrix log_weights(const ConstRows& point) const { return attention_map(task_, point, threads_).log_weights; }

  /// The weights of the tokens that the queries see, 0 for those hidden between them, as pictures at as many points as
  /// fit, for as many queries as fit. A weight is a byte, 255 times its root (small weights differ too), in base64.
  Json map() const {
    Index queries = 0, size = 0;
    for (; queries < task_.queries() && (queries == 0 || size + reach_of(task_, queries) <= kMapBytes); ++queries)
      size += reach_of(task_, queries);
    const std::vector<std::size_t> shown =
        spread(points_.size(), std::clamp<std::size_t>(static_cast<std::size_t>(kMapBytes / size), 1, points_.size()));
    std::string bytes;
    for (const std::size_t k : shown) {
      const RowMatrix log = log_weights(points_[k]);
      for (Index i = 0; i < queries; ++i) {
        for (Index t = 0; t < reach_of(task_, i); ++t)
          bytes.push_back(static_cast<char>(std::lround(255 * std::exp(log(i, t) / 2))));
      }
    }
    return {{"queries", queries}, {"points", shown}, {"weights", base64(bytes)}};
  }

  Json query_attention(const Selection& selection, const std::vector<RowMatrix>& logs, Index i) const {
    std::vector<double> peak(static_cast<std::size_t>(task_.longest()), -std::numeric_limits<double>::infinity());
    std::vector<Index> tokens(task_.seen(i).begin(), task_.seen(i).end());
    for (const RowMatrix& log : logs) {
      for (const Index t : tokens)
        peak[static_cast<std::size_t>(t)] = std::max(peak[static_cast<std::size_t>(t)], log(i, t));
    }
    std::stable_sort(tokens.begin(), tokens.end(), [&](Index a, Index b) {
      const bool kept_a = selection.keeps(i, a), kept_b = selection.keeps(i, b);
      if (kept_a != kept_b) return kept_a;
      return peak[static_cast<std::size_t>(a)] > peak[static_cast<std::size_t>(b)];
    });
    const std::size_t followed = std::min(kTokens, tokens.size());
    std::vector<std::vector<double>> weights(followed);
    std::vector<double> rest;
    for (const RowMatrix& log : logs) {
      for (std::size_t k = 0; k < followed; ++k) weights[k].push_back(std::exp(log(i, tokens[k])));
      double others = 0;
      for (std::size_t k = followed; k < tokens.size(); ++k) others += std::exp(log(i, tokens[k]));
      rest.push_back(others);
    }
    const bool all = followed == tokens.size();
    tokens.resize(followed);
    return {{"tokens", tokens}, {"weights", weights}, {"rest", all ? Json(nullptr) : Json(rest)}};
  }

  /// δᵀWζ/‖W‖_F of the shown rows at the last point.
  Json margins(const StoredSolution& stored) const {
    const RowMatrix& W = given_.run.W;
    const double norm = W.stableNorm();
    if (!(norm > 0)) return nullptr;
    const Eigen::VectorXd values = MarginProblem::attention(task_, Selection::from_array(stored.select, task_.visible(),
                                                                                         task_.longest(), "select"))
                                       .values(W);
    Json list = Json::array();
    for (const std::size_t k : shown_rows(stored)) list.push_back(values(static_cast<Index>(k)) / norm);
    return list;
  }

  const AttentionTask& task_;
  const Axes& axes_;
  const ReportRun& given_;
  Threads& threads_;
  std::vector<std::size_t> record_;  // which of the file's points are shown; empty where it recorded none
  std::vector<ConstRows> points_;
};

}  // namespace

Json run_json(const AttentionTask& task, const Axes& axes, const ReportRun& given, const Check& check,
              const Compared& compared, const Answer* rows_of, Threads& threads) {
  return RunPart(task, axes, given, threads).json(check, compared, rows_of);
}

}  // namespace attsvm::internal
