#include "report/stack_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attsvm/version.h"
#include "io/hierarchy_data.h"
#include "report/run_curves.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kStackRecords = 200;  // most recorded points shown
constexpr Index kStackWeights = 100'000;    // most attention weights shown; the first sequence is always there
constexpr Index kStackSequences = 1'000;    // and most sequences

std::vector<StackRecord> shown_records(const std::vector<StackRecord>& all) {
  std::vector<StackRecord> shown;
  for (const std::size_t k : spread(all.size(), kStackRecords)) shown.push_back(all[k]);
  return shown;
}

/// Of every head, a list over the records.
Json gradients_json(std::span<const StackRecord> records) {
  Json list = Json::array();
  for (std::size_t k = 0; k < records.front().log_gradient.size(); ++k) {
    Json of_head = Json::array();
    for (const StackRecord& record : records)
      of_head.push_back(k < record.log_gradient.size() ? record.log_gradient[k] / std::log(10.0) : std::nan(""));
    list.push_back(std::move(of_head));
  }
  return list;
}

/// How many sequences have their attention on the page.
Index shown_sequences(const AttentionTask& read, Index matrices) {
  Index count = 0, numbers = 0;
  for (; count < std::min(read.sequences(), kStackSequences); ++count) {
    numbers += matrices * read.length(count) * read.length(count);
    if (count > 0 && numbers > kStackWeights) break;
  }
  return count;
}

/// The first sequences of what a layer reads, whose queries are in the order of their sequences: views of its memory.
AttentionTask first_sequences(const AttentionTask& read, Index count) {
  TaskArrays arrays = read.arrays();
  const std::vector<Index> sequence = to_indices(arrays.sequence, "sequence");
  const Index queries = std::lower_bound(sequence.begin(), sequence.end(), count) - sequence.begin();
  arrays.tokens.shape[0] = read.offset(count);
  arrays.offsets.shape[0] = count + 1;
  for (Array* of_queries : {&arrays.query_token, &arrays.sequence, &arrays.visible}) of_queries->shape[0] = queries;
  return AttentionTask(std::move(arrays));
}

/// The attention in one layer: per head, sequence and position, the weights of what it sees.
Json weights_json(const AttentionTask& read, const Stack& stack, Index layer, Threads& threads) {
  Json heads = Json::array();
  for (Index h = 0; h < stack.heads; ++h) {
    const AttentionMap map = attention_map(read, stack.W[stack.at(layer, h)], threads);
    std::vector<std::vector<std::vector<double>>> of(static_cast<std::size_t>(read.sequences()));
    for (Index i = 0; i < read.queries(); ++i) {
      std::vector<double> weights;
      for (Index t = 0; t < read.visible(i); ++t) weights.push_back(std::exp(map.log_weights(i, t)));
      of[static_cast<std::size_t>(read.sequence(i))].push_back(std::move(weights));
    }
    heads.push_back(std::move(of));
  }
  return heads;
}

/// The positions that ask in a layer, by sequence.
Json askers_json(const AttentionTask& read) {
  const std::vector<Index> tokens = to_indices(read.arrays().query_token, "query_token");
  std::vector<std::vector<Index>> list(static_cast<std::size_t>(read.sequences()));
  for (Index i = 0; i < read.queries(); ++i)
    list[static_cast<std::size_t>(read.sequence(i))].push_back(tokens[static_cast<std::size_t>(i)]);
  return list;
}

Json attention_json(const AttentionTask& task, const Stack& stack, Threads& threads) {
  const std::vector<AttentionTask> all = layer_tasks(task, stack, Askers::all, threads);
  const std::vector<AttentionTask> live = layer_tasks(task, stack, Askers::live, threads);
  const Index sequences = shown_sequences(all.front(), stack.layers * stack.heads);
  Json weights = Json::array(), positions = Json::array(), asked = Json::array();
  for (Index layer = 0; layer < stack.layers; ++layer) {
    const auto k = static_cast<std::size_t>(layer);
    const AttentionTask shown = first_sequences(all[k], sequences);
    weights.push_back(weights_json(shown, stack, layer, threads));
    positions.push_back(askers_json(shown));
    asked.push_back(askers_json(first_sequences(live[k], sequences)));
  }
  return {{"sequences", sequences},
          {"positions", std::move(positions)},
          {"live", std::move(asked)},
          {"weights", std::move(weights)}};
}

/// How far a head is from its SVM at every record, which is drawn, and its null at the last one.
void add_distances(Json& judged, const std::vector<HeadMargin>& heads) {
  const auto from_one = [](const std::vector<double>& list) {
    std::vector<double> distances;
    distances.reserve(list.size());
    for (const double one : list) distances.push_back(1 - one);
    return distances;
  };
  for (std::size_t k = 0; k < heads.size(); ++k) {
    judged[k]["correlation_distances"] = from_one(heads[k].correlation);
    judged[k]["rho_distances"] = from_one(heads[k].rho);
    judged[k]["last_correlation"]["mean_distance"] = 1 - heads[k].last_correlation.mean();
    judged[k]["last_rho"]["mean_distance"] = 1 - heads[k].last_rho.mean();
  }
}

}  // namespace

Json stack_page(const AttentionTask& task, const ReportStack& given, const ReportRequest& request, Threads& threads) {
  const StoredStack& stored = given.stack;
  const std::vector<StackRecord> records = shown_records(stored.records);
  const Stack& last = records.back().stack;
  HierarchySettings judged = given.judged;
  if (request.progress) {
    judged.progress = [&, asked = given.judged.progress](const HierarchyProgress& now) {
      request.progress({.share = static_cast<double>(now.done) / static_cast<double>(std::max<Index>(now.solves, 1)),
                        .part = fmt::format("judging: SVM {} of {}", now.done, now.solves)});
      return asked && asked(now);
    };
  }
  const std::vector<HeadMargin> heads = hierarchy(task, records, judged, threads);
  std::vector<double> loss;
  loss.reserve(records.size());
  for (const StackRecord& record : records) loss.push_back(record.loss);
  Json data{{"kind", "stack"},
            {"attsvm", ATTSVM_VERSION},
            {"title", request.title},
            {"command", request.command},
            {"task", Json::parse(task_facts(task))},
            {"file", given.file},
            {"settings", stored.settings.empty() ? Json(nullptr) : Json(stored.settings)},
            {"layers", last.layers},
            {"heads", last.heads},
            {"causal", last.causal},
            {"seed", judged.seed},
            {"records", stored.records.size()},
            {"loss", std::move(loss)},
            {"log10_gradient", gradients_json(records)},
            {"attention", attention_json(task, last, threads)}};
  data.update(hierarchy_json(records, heads, judged));
  add_distances(data["judged"], heads);
  return data;
}

}  // namespace attsvm::internal
