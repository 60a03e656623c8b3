#include "audit/audit_data.h"

#include <cmath>

#include "audit/kinds.h"

namespace attsvm::internal {
namespace {

template <class Type, class Plain>
concept Of = std::same_as<std::remove_const_t<Type>, Plain>;

// The fields of JSON objects in their order: each(name, member). Writing and reading go through the same lists.

template <Of<KindShare> Type>
void each_field(Type& of, auto&& each) {
  each("kind", of.kind);
  each("share", of.share);
  each("words", of.words);
}

template <Of<NullFacts> Type>
void each_field(Type& of, auto&& each) {
  each("value", of.value);
  each("null_mean", of.mean);
  each("null_deviation", of.deviation);
  each("z", of.z);
  each("draws", of.draws);
}

template <Of<MarginFacts> Type>
void each_field(Type& of, auto&& each) {
  each("status", of.status);
  each("objective", of.objective);
  each("dual_objective", of.dual_objective);
  each("rho", of.rho);
  each("support", of.support);
  each("rank", of.rank);
  each("rank_certified", of.rank_certified);
  each("singular_values", of.singular_values);
}

/// What pairs and uncertain queries say about their query.
void each_of_query(auto& of, auto&& each) {
  each("query", of.query);
  each("sequence", of.sequence);
  each("position", of.position);
  each("query_text", of.query_text);
}

template <Of<SupportPair> Type>
void each_field(Type& of, auto&& each) {
  each_of_query(of, each);
  each("keep", of.keep);
  each("keep_text", of.keep_text);
  each("keep_kind", of.keep_kind);
  each("drop", of.drop);
  each("drop_text", of.drop_text);
  each("drop_kind", of.drop_kind);
  each("weight", of.weight);
}

template <Of<KindPair> Type>
void each_field(Type& of, auto&& each) {
  each("keep", of.keep);
  each("drop", of.drop);
  each("weight", of.weight);
  each("rows", of.rows);
}

template <Of<UncertainQuery> Type>
void each_field(Type& of, auto&& each) {
  each_of_query(of, each);
  each("first", of.first);
  each("first_text", of.first_text);
  each("second", of.second);
  each("second_text", of.second_text);
  each("gap", of.gap);
  each("weight", of.weight);
}

template <Of<ViewAudit> Type>
void each_field(Type& of, auto&& each) {
  each("choosing", of.choosing);
  each("queries", of.queries);
  each("held_out", of.held_out);
  each("rows", of.rows);
  each("kinds", of.kinds);
  each("gap", of.gap);
  each("weight", of.weight);
  each("radius", of.radius);
  each("r90", of.r90);
  each("r95", of.r95);
  each("agreement", of.agreement);
  each("singular_values", of.singular_values);
  each("frobenius", of.frobenius);
  each("nuclear", of.nuclear);
  each("rank_bound", of.rank_bound);
  each("gap_over_norm", of.gap_over_norm);
  each("rho", of.rho);
  each("pairs", of.pairs);
  each("kind_pairs", of.kind_pairs);
  each("uncertain", of.uncertain);
}

template <Of<HeadAudit> Type>
void each_field(Type& of, auto&& each) {
  each("layer", of.layer);
  each("head", of.head);
  each("difference", of.difference);
  each("sink_weight", of.sink_weight);
  each("complete", of.complete);
  each("seconds", of.seconds);
  each("views", of.views);
}

constexpr const char* kHidden = "sinks hidden";

Json write(double number) { return number; }
Json write(Index number) { return number; }
Json write(bool flag) { return flag; }
Json write(const std::string& text) { return text; }
Json write(std::string_view text) { return text; }
Json write(ChoiceKind kind) { return name_of(kind); }
Json write(const Quantiles& of) { return {of.low, of.middle, of.high}; }

template <class Part>
Json write(const std::vector<Part>& list);

template <class Type>
Json write(const Type& of) {
  Json json = Json::object();
  if constexpr (std::same_as<Type, ViewAudit>) json["view"] = of.hidden ? kHidden : "own";
  each_field(of, [&](const char* name, const auto& member) { json[name] = write(member); });
  if constexpr (std::same_as<Type, MarginFacts>) {
    if (of.status != "not run") return json;
    for (const char* name : {"objective", "dual_objective", "rho", "support", "rank"}) json[name] = nullptr;
  }
  if constexpr (std::same_as<Type, SupportPair> || std::same_as<Type, UncertainQuery>) {
    if (of.position < 0) json["position"] = nullptr;
  }
  if constexpr (std::same_as<Type, ViewAudit>) {
    for (const char* name : {"rank", "rank_certified", "singular_values"}) json["frobenius"].erase(name);
  }
  return json;
}

template <class Part>
Json write(const std::vector<Part>& list) {
  Json json = Json::array();
  for (const Part& one : list) json.push_back(write(one));
  return json;
}

// What is null keeps what the struct begins with; a number is NaN.

void read(const Json& json, double& number) { number = json.is_null() ? std::nan("") : json.get<double>(); }
void read(const Json& json, Index& number) {
  if (!json.is_null()) number = json.get<Index>();
}
void read(const Json& json, bool& flag) { flag = json.get<bool>(); }
void read(const Json& json, std::string& text) { text = json.get<std::string>(); }
void read(const Json& json, std::string_view& kind) { kind = token_kind(json.get<std::string>()); }
void read(const Json& json, ChoiceKind& kind) { kind = choice_kind(json.get<std::string>()); }
void read(const Json& json, Quantiles& of) {
  read(json.at(0), of.low);
  read(json.at(1), of.middle);
  read(json.at(2), of.high);
}

template <class Part>
void read(const Json& json, std::vector<Part>& list);

template <class Type>
void read(const Json& json, Type& of) {
  if constexpr (std::same_as<Type, ViewAudit>) of.hidden = json.at("view") == kHidden;
  each_field(of, [&](const char* name, auto& member) {
    if constexpr (std::same_as<Type, MarginFacts>) {
      if (!json.contains(name)) return;  // the rank of a Frobenius answer
    }
    read(json.at(name), member);
  });
}

template <class Part>
void read(const Json& json, std::vector<Part>& list) {
  for (const Json& one : json) read(one, list.emplace_back());
}

}  // namespace

Json head_json(const HeadAudit& head) { return write(head); }

HeadAudit head_from(const Json& json) {
  HeadAudit head;
  read(json, head);
  return head;
}

Json audit_json(const Audit& audit) { return write(audit.heads); }

Json settings_json(const AuditSettings& settings) {
  return {{"queries", settings.queries},
          {"drop", settings.drop},
          {"nulls", settings.nulls},
          {"tolerance", settings.tolerance},
          {"null_tolerance", settings.null_tolerance},
          {"time_limit", settings.time_limit},
          {"seed", settings.seed}};
}

}  // namespace attsvm::internal
