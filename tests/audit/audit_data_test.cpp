#include "audit/audit_data.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "support.h"

namespace attsvm {
namespace {

constexpr Index kSize = 64;

std::vector<double> numbers(Index count, std::uint32_t stream) {
  const Random random(7, 0, stream);
  std::vector<double> list;
  for (Index k = 0; k < count; ++k) list.push_back(random.normal(static_cast<std::uint64_t>(k)));
  return list;
}

/// A view in which nothing is left out, with numbers of all digits.
ViewAudit full_view(bool hidden, Index tokens) {
  const std::vector<double> some = numbers(40, 1);
  const std::string word = "procedures";
  ViewAudit view{.hidden = hidden, .choosing = 3000, .queries = 1000, .held_out = 700, .rows = 30000};
  for (const ChoiceKind kind : {ChoiceKind::offset, ChoiceKind::constant, ChoiceKind::word, ChoiceKind::induction})
    view.kinds.push_back({kind, some[0], "position 0"});
  view.gap = {some[1], some[2], std::nan("")};
  view.weight = {some[3], some[4], some[5]};
  view.radius = {some[6], some[7], some[8]};
  view.singular_values = numbers(kSize, 2);
  view.agreement = numbers(kSize, 3);
  view.r90 = 17;
  view.r95 = 23;
  view.frobenius = {"stalled", some[9], some[10], some[11], 300};
  view.nuclear = {"optimal", some[12], some[13], some[14], 400, kSize, true, numbers(kSize, 4)};
  view.rank_bound = some[15];
  view.gap_over_norm = {10, some[16], some[17], some[18], std::nan("")};
  view.rho = {10, some[19], some[20], some[21], some[22]};
  for (Index k = 0; k < 20; ++k)
    view.pairs.push_back({2000 + k, k, 15, 20, tokens - 1, word, word, word, "same word", "induction", some[23]});
  for (Index k = 0; k < 49; ++k) view.kind_pairs.push_back({"previous", "same word", some[24], 1000});
  for (Index k = 0; k < 10; ++k)
    view.uncertain.push_back({2000 + k, k, -1, 20, 30, word, word, word, some[25], some[26]});
  return view;
}

HeadSet tokens_alone() {
  constexpr Index kSequences = 100, kLength = 30, kTokens = kSequences * kLength;
  std::vector<Index> offsets;
  for (Index s = 0; s <= kSequences; ++s) offsets.push_back(s * kLength);
  return HeadSet({.keys = Array::own(std::vector<double>(kTokens, 1.0), {1, kTokens, 1}),
                  .queries = Array::own(std::vector<double>(1, 1.0), {1, 1, 1}),
                  .offsets = Array::own(std::move(offsets), {kSequences + 1}),
                  .sequence = Array::own(std::vector<Index>{0}, {1})});
}

TEST(AuditData, HeadsSurviveTheJournal) {
  HeadAudit head{
      .layer = 3, .head = 5, .difference = std::nan(""), .sink_weight = 0.1, .complete = false, .seconds = 2};
  head.views = {full_view(false, 31), full_view(true, 31)};
  head.views[1].nuclear = {};  // not run
  head.views[1].pairs.clear();
  head.views[1].gap = {-std::numeric_limits<double>::quiet_NaN(), 1, std::numeric_limits<double>::infinity()};
  const std::string text = head_json(head).dump();
  const HeadAudit again = head_from(Json::parse(text));
  EXPECT_EQ(head_json(again).dump(), text);
  EXPECT_EQ(again.views[0].nuclear.rank, kSize);
  EXPECT_EQ(again.views[0].pairs[3].position, 15);
  EXPECT_EQ(again.views[0].uncertain[3].position, -1);
  EXPECT_EQ(again.views[0].pairs[3].keep_kind, "same word");
  EXPECT_TRUE(std::isnan(again.views[0].gap.high) && again.views[1].hidden && !again.views[0].hidden);
  const NamedArrays before = audit_arrays({{head}, false}), after = audit_arrays({{again}, false});
  for (std::size_t k = 0; k < before.size(); ++k)
    EXPECT_EQ(test::bytes_of(before[k].second), test::bytes_of(after[k].second)) << before[k].first;
}

TEST(AuditData, ForeignKindsAreRefused) {
  Json json = head_json({.views = {full_view(false, 31)}});
  json["views"][0]["pairs"][0]["keep_kind"] = "nothing";
  test::expect_refusal([&] { head_from(json); }, {"unknown kind 'nothing'"});
  json["views"][0]["pairs"] = Json::array();
  json["views"][0]["kinds"][0]["kind"] = 3;
  EXPECT_THROW(head_from(json), Json::exception);
}

TEST(AuditPage, HoldsManyHeadsInFewBytes) {
  const HeadSet heads = tokens_alone();
  Audit audit;
  for (Index k = 0; k < 270; ++k)
    audit.heads.push_back({.layer = k / 9, .head = k % 9, .views = {full_view(false, 30), full_view(true, 30)}});
  const std::string data = audit_page(heads, audit, {}, "heads.npz", "attsvm audit heads.npz");
  EXPECT_LT(data.size(), 9'000'000U);
  EXPECT_EQ(data.find("seconds"), std::string::npos);
  const Json json = Json::parse(data);
  EXPECT_EQ(json.at("text").size(), 20U) << "the sequences of pairs and of uncertain queries";
  EXPECT_EQ(json.at("text").at(1).at("words").at(0), "#30");
}

}  // namespace
}  // namespace attsvm
