#include "report/run_part.h"

#include <algorithm>
#include <cmath>

#include "report/run_answer.h"

namespace attsvm::internal {
namespace {

constexpr Index kPathNumbers = 400'000;  // most numbers of paths, and of attention weights
constexpr Index kMapBytes = 4'000'000;   // most weights of attention maps
constexpr std::size_t kTokens = 12;      // most tokens per query whose weights are shown

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
      : task_(task), axes_(axes), given_(given), threads_(threads), curves_(given) {}

  Json json(const Check& check, const Compared& compared, const Answer* rows_of) const {
    Json data = curves_.json(check.implied, check.shares);
    data.update(curves_.selecting(task_, threads_));
    data.update({{"verdict", name_of(check.verdict)},
                 {"reason", check.reason},
                 {"answer", answer_of(check, given_.run).text},
                 {"kept", kept(check.selection)},
                 {"correlations", correlations(check, compared)},
                 {"directions", directions()},
                 {"attention", attention(check.selection)},
                 {"map", map()},
                 {"margins", rows_of != nullptr ? margins(rows_of->stored) : Json(nullptr)}});
    return data;
  }

 private:
  Json correlations(const Check& check, const Compared& compared) const {
    Json list = curves_.correlations(compared);
    const auto add = [&](const char* label, const std::vector<double>& all) {
      if (!all.empty()) list.push_back(curves_.correlation(label, all));
    };
    add("W_{fin} + R W^{mm}", check.correlation_equivalence);
    add("SVM of the largest token alone", check.correlation_single);
    return list;
  }

  static Json kept(const Selection& selection) {
    Json list = Json::array();
    for (Index i = 0; i < selection.queries(); ++i) {
      const auto tokens = selection.kept(i);
      list.push_back(std::vector<Index>(tokens.begin(), tokens.end()));
    }
    return list;
  }

  /// One block per point, for as many queries as fit.
  Json directions() const {
    const Index each = static_cast<Index>(curves_.points().size()) * (axes_.count() + 1);
    const Index queries = std::clamp<Index>(kPathNumbers / each, 1, task_.queries());
    Json list = Json::array();
    for (const ConstRows& point : curves_.points()) list.push_back(directions_json(task_, axes_, point, queries));
    return list;
  }

  /// For as many queries as fit: the kept tokens and those that ever get much weight, and the sum of the others.
  Json attention(const Selection& selection) const {
    const Index each = static_cast<Index>(curves_.points().size() * (kTokens + 1));
    const Index queries = std::clamp<Index>(kPathNumbers / each, 1, task_.queries());
    std::vector<RowMatrix> logs;  // per point: (queries, T)
    for (const ConstRows& point : curves_.points()) logs.emplace_back(log_weights(point).topRows(queries));
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
        spread(curves_.points().size(),
               std::clamp<std::size_t>(static_cast<std::size_t>(kMapBytes / size), 1, curves_.points().size()));
    std::string bytes;
    for (const std::size_t k : shown) {
      const RowMatrix log = log_weights(curves_.points()[k]);
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
  RunCurves curves_;
};

}  // namespace

Json run_json(const AttentionTask& task, const Axes& axes, const ReportRun& given, const Check& check,
              const Compared& compared, const Answer* rows_of, Threads& threads) {
  return RunPart(task, axes, given, threads).json(check, compared, rows_of);
}

}  // namespace attsvm::internal
