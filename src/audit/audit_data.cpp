#include "audit/audit_data.h"

#include <algorithm>
#include <cmath>

namespace attsvm {

using namespace internal;

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Quantiles& of) { return {of.low, of.middle, of.high}; }

Json json_of(const NullFacts& of) {
  return {
      {"value", of.value}, {"null_mean", of.mean}, {"null_deviation", of.deviation}, {"z", of.z}, {"draws", of.draws}};
}

Json json_of(const MarginFacts& of, bool nuclear) {
  const bool run = of.status != "not run";
  Json fields{{"status", of.status},
              {"objective", run ? Json(of.objective) : Json(nullptr)},
              {"dual_objective", run ? Json(of.dual_objective) : Json(nullptr)},
              {"rho", run ? Json(of.rho) : Json(nullptr)},
              {"support", run ? Json(of.support) : Json(nullptr)}};
  if (nuclear) {
    fields["rank"] = run ? Json(of.rank) : Json(nullptr);
    fields["rank_certified"] = of.rank_certified;
    fields["singular_values"] = of.singular_values;
  }
  return fields;
}

Json json_of(const ViewAudit& view) {
  Json kinds = Json::array(), pairs = Json::array(), kind_pairs = Json::array(), uncertain = Json::array();
  for (const KindShare& one : view.kinds)
    kinds.push_back({{"kind", name_of(one.kind)}, {"share", one.share}, {"words", one.words}});
  for (const SupportPair& one : view.pairs) {
    pairs.push_back({{"query", one.query},
                     {"query_text", one.query_text},
                     {"keep", one.keep},
                     {"keep_text", one.keep_text},
                     {"keep_kind", one.keep_kind},
                     {"drop", one.drop},
                     {"drop_text", one.drop_text},
                     {"drop_kind", one.drop_kind},
                     {"weight", one.weight}});
  }
  for (const KindPair& one : view.kind_pairs)
    kind_pairs.push_back({{"keep", one.keep}, {"drop", one.drop}, {"weight", one.weight}, {"rows", one.rows}});
  for (const UncertainQuery& one : view.uncertain) {
    uncertain.push_back({{"query", one.query},
                         {"query_text", one.query_text},
                         {"first", one.first},
                         {"first_text", one.first_text},
                         {"second", one.second},
                         {"second_text", one.second_text},
                         {"gap", one.gap},
                         {"weight", one.weight}});
  }
  return {{"view", view.hidden ? "sinks hidden" : "own"},
          {"choosing", view.choosing},
          {"queries", view.queries},
          {"held_out", view.held_out},
          {"rows", view.rows},
          {"kinds", std::move(kinds)},
          {"gap", json_of(view.gap)},
          {"weight", json_of(view.weight)},
          {"radius", json_of(view.radius)},
          {"r90", view.r90},
          {"r95", view.r95},
          {"agreement", view.agreement},
          {"singular_values", view.singular_values},
          {"frobenius", json_of(view.frobenius, false)},
          {"nuclear", json_of(view.nuclear, true)},
          {"rank_bound", view.rank_bound},
          {"gap_over_norm", json_of(view.gap_over_norm)},
          {"rho", json_of(view.rho)},
          {"pairs", std::move(pairs)},
          {"kind_pairs", std::move(kind_pairs)},
          {"uncertain", std::move(uncertain)}};
}

/// Arrays with one entry per view and head, or several; NaN where a head has no such view.
class Grid {
 public:
  explicit Grid(const Audit& audit) : audit_(audit), heads_(static_cast<Index>(audit.heads.size())) {
    for (const HeadAudit& head : audit.heads) views_ = std::max(views_, static_cast<Index>(head.views.size()));
  }

  /// (v,h), or (v,h,count): numbers(view) returns `count` of them, or fewer.
  template <class Numbers>
  Array of(Index count, Numbers numbers) const {
    std::vector<double> list;
    for (Index v = 0; v < views_; ++v) {
      for (const HeadAudit& head : audit_.heads) {
        std::vector<double> some;
        if (v < static_cast<Index>(head.views.size())) some = numbers(head.views[static_cast<std::size_t>(v)]);
        some.resize(static_cast<std::size_t>(count), std::nan(""));
        list.insert(list.end(), some.begin(), some.end());
      }
    }
    std::vector<Index> shape{views_, heads_};
    if (count != 1) shape.push_back(count);
    return Array::own(std::move(list), std::move(shape));
  }

  template <class Number>
  Array number(Number number) const {
    return of(1, [&](const ViewAudit& view) { return std::vector<double>{static_cast<double>(number(view))}; });
  }

 private:
  const Audit& audit_;
  Index heads_, views_ = 1;
};

}  // namespace

Json internal::audit_json(const Audit& audit) {
  Json heads = Json::array();
  for (const HeadAudit& head : audit.heads) {
    Json views = Json::array();
    for (const ViewAudit& view : head.views) views.push_back(json_of(view));
    heads.push_back({{"layer", head.layer},
                     {"head", head.head},
                     {"difference", head.difference},
                     {"sink_weight", head.sink_weight},
                     {"complete", head.complete},
                     {"seconds", head.seconds},
                     {"views", std::move(views)}});
  }
  return heads;
}

NamedArrays audit_arrays(const Audit& audit) {
  const Grid grid(audit);
  const auto count = static_cast<Index>(audit.heads.size());
  std::vector<Index> layer, head;
  std::vector<double> difference, sink_weight;
  std::vector<bool> complete;
  Index ranks = 1;
  for (const HeadAudit& one : audit.heads) {
    layer.push_back(one.layer);
    head.push_back(one.head);
    difference.push_back(one.difference);
    sink_weight.push_back(one.sink_weight);
    complete.push_back(one.complete);
    for (const ViewAudit& view : one.views) ranks = std::max(ranks, static_cast<Index>(view.singular_values.size()));
  }
  const auto three = [](const Quantiles& of) { return std::vector<double>{of.low, of.middle, of.high}; };
  const auto null = [](const NullFacts& of) { return std::vector<double>{of.value, of.mean, of.deviation}; };
  const auto margin = [](const MarginFacts& of) {
    return of.status == "not run" ? std::vector<double>{}
                                  : std::vector<double>{of.objective, of.dual_objective, of.rho};
  };
  return {{"layer", Array::own(std::move(layer), {count})},
          {"head", Array::own(std::move(head), {count})},
          {"difference", Array::own(std::move(difference), {count})},
          {"sink_weight", Array::own(std::move(sink_weight), {count})},
          {"complete", Array::own(complete, {count})},
          {"queries", grid.number([](const ViewAudit& view) { return view.queries; })},
          {"held_out", grid.number([](const ViewAudit& view) { return view.held_out; })},
          {"rows", grid.number([](const ViewAudit& view) { return view.rows; })},
          {"kind", grid.of(4,
                           [](const ViewAudit& view) {
                             std::vector<double> shares(4, std::nan(""));
                             for (const KindShare& one : view.kinds)
                               shares[static_cast<std::size_t>(one.kind)] = one.share;
                             return shares;
                           })},
          {"gap", grid.of(3, [&](const ViewAudit& view) { return three(view.gap); })},
          {"weight", grid.of(3, [&](const ViewAudit& view) { return three(view.weight); })},
          {"radius", grid.of(3, [&](const ViewAudit& view) { return three(view.radius); })},
          {"r90", grid.number([](const ViewAudit& view) { return view.r90; })},
          {"r95", grid.number([](const ViewAudit& view) { return view.r95; })},
          {"agreement", grid.of(ranks, [](const ViewAudit& view) { return view.agreement; })},
          {"singular_values", grid.of(ranks, [](const ViewAudit& view) { return view.singular_values; })},
          {"frobenius", grid.of(3, [&](const ViewAudit& view) { return margin(view.frobenius); })},
          {"nuclear", grid.of(3, [&](const ViewAudit& view) { return margin(view.nuclear); })},
          {"nuclear_rank", grid.number([](const ViewAudit& view) { return view.nuclear.rank; })},
          {"rank_bound", grid.number([](const ViewAudit& view) { return view.rank_bound; })},
          {"gap_over_norm", grid.of(3, [&](const ViewAudit& view) { return null(view.gap_over_norm); })},
          {"rho", grid.of(3, [&](const ViewAudit& view) { return null(view.rho); })}};
}

}  // namespace attsvm
