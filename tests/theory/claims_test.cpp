// The experiments behind the claims, on a few tasks each. Every SVM in them is verified when it is solved.
#include <cmath>
#include <limits>
#include <set>

#include "support.h"
#include "theory/claim_tools.h"

namespace attsvm {
namespace {

class EveryClaim : public testing::TestWithParam<Claim> {};

TEST_P(EveryClaim, IsTestedOnTheTasksAskedFor) {
  Threads threads(2);
  const Claim& claim = GetParam();
  const ClaimResult result = test_claim(claim, {.tasks = 2, .seed = 5}, threads);
  EXPECT_EQ(result.tasks, 2);
  EXPECT_TRUE(result.complete);
  EXPECT_TRUE(std::isfinite(result.worst));
  EXPECT_EQ(result.counterexample.has_value(), result.held < result.tasks);
  for (const ClaimFigure& figure : result.figures) EXPECT_TRUE(std::isfinite(figure.value)) << figure.label;
  // docs/claims.md explains why the first three sometimes fail (noise: finding 8, draws help in most sweeps, not in
  // all), and the others mostly do.
  static const std::set<std::string> known{"equivalence-relu", "noise",         "smoothing", "heads-divide",
                                           "layers-all",       "layers-values", "layers-mlp"};
  if (!known.contains(std::string(claim.name))) {
    EXPECT_EQ(result.held, result.tasks) << result.counterexample->words;
  }
}

/// Every number that batches change has to be kept: what one forgets is missing from the figures here.
TEST_P(EveryClaim, GoesOnWhereItWasStopped) {
  Threads threads(2);
  const Claim& claim = GetParam();
  ClaimSettings settings{.tasks = 3, .seed = 6, .batch = 1};
  const ClaimResult whole = test_claim(claim, settings, threads);
  std::vector<ClaimBatch> batches;
  std::string words;
  bool stop = false;
  settings.progress = [&](const ClaimProgress&) { return stop; };
  settings.keep = [&](const ClaimBatch& batch, const CounterExample* worst) {
    batches.push_back(batch);
    if (worst != nullptr) words = worst->words;
    stop = true;
  };
  ClaimResult part;
  do {
    const std::vector<ClaimBatch> done = batches;
    settings.done = done;
    stop = false;
    part = test_claim(claim, settings, threads);
  } while (!part.complete);
  EXPECT_GT(batches.size(), 1U);
  // A batch that is given up halfway leaves nothing behind.
  for (const int questions : {2, 4}) {
    Threads alone(1);
    double kept = 0;  // tasks; the first number of a batch
    const ClaimResult given_up =
        test_claim(claim,
                   {.tasks = 3,
                    .seed = 6,
                    .stopped = [questions, asked = 0]() mutable { return ++asked > questions; },
                    .batch = 2,
                    .keep = [&](const ClaimBatch& batch, const CounterExample*) { kept = batch.front(); }},
                   alone);
    EXPECT_EQ(static_cast<double>(given_up.tasks), kept) << questions;
    EXPECT_EQ(given_up.counterexample.has_value(), given_up.held < given_up.tasks);
  }
  EXPECT_EQ(part.tasks, whole.tasks);
  EXPECT_EQ(part.held, whole.held);
  EXPECT_EQ(part.worst, whole.worst);
  EXPECT_EQ(words, whole.counterexample ? whole.counterexample->words : "");
  ASSERT_EQ(part.figures.size(), whole.figures.size());
  for (std::size_t k = 0; k < whole.figures.size(); ++k) {
    EXPECT_EQ(part.figures[k].label, whole.figures[k].label);
    EXPECT_EQ(part.figures[k].value, whole.figures[k].value) << whole.figures[k].label;
  }
}

std::string test_name(const testing::TestParamInfo<Claim>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Claims, EveryClaim, testing::ValuesIn(claims().begin(), claims().end()), test_name);

TEST(Claims, HaveNamesOfTheirOwnAndSayWhatTheyAreAbout) {
  std::set<std::string_view> names;
  for (const Claim& claim : claims()) {
    EXPECT_TRUE(names.insert(claim.name).second) << claim.name;
    EXPECT_FALSE(claim.statement.empty() || claim.source.empty() || claim.measure.empty());
    EXPECT_TRUE(claim.source.find("abstract") != claim.source.npos ||
                claim.source.find("Abstract") != claim.source.npos || claim.source.find("ours") != claim.source.npos)
        << claim.name;
    EXPECT_GT(claim.tasks, 0);
  }
}

double figure(const ClaimResult& result, std::string_view label) {
  for (const ClaimFigure& one : result.figures) {
    if (one.label == label) return one.value;
  }
  ADD_FAILURE() << "no figure " << label;
  return std::numeric_limits<double>::quiet_NaN();
}

TEST(Claims, OneInputIsReachedFromAnywhereAndTheTwoInputExampleIsNot) {
  Threads threads(2);
  const ClaimResult result = test_claim(*find_claims("global").front(), {.tasks = 4}, threads);
  EXPECT_LT(figure(result, "one input: largest 1 - correlation"), 1e-4);
  EXPECT_NEAR(figure(result, "two-input example: 1 - correlation with p^mm"), 1 - 1 / std::sqrt(10), 1e-4);
  EXPECT_LT(figure(result, "two-input example: 1 - correlation with the first input's difference"), 1e-10);
}

TEST(Claims, TheLeadingOrderPredictsJointPathsThatTheRelaxedSvmMisses) {
  Threads threads(2);
  const ClaimResult result = test_claim(*find_claims("joint-loose").front(), {.tasks = 6}, threads);
  EXPECT_EQ(result.held, 6);
  for (const std::string ball : {"1", "10", "100"})
    EXPECT_LT(figure(result, "head's ball " + ball + " R: largest 1 - correlation of p"), 1e-4);
  EXPECT_GT(figure(result, "head's ball 1 R: largest 1 - correlation of p with the relaxed p-SVM"), 0.01);
}

TEST(Claims, AreFoundByNameOrByTheBeginningOfIt) {
  EXPECT_EQ(find_claims("rank").size(), 1U);
  EXPECT_EQ(find_claims("path").size(), 3U);
  EXPECT_EQ(find_claims("path-KQ").front()->name, "path-KQ");
  test::expect_refusal([] { find_claims("pat"); }, {"'pat'", "separability", "path-W", "sequence"});
  test::expect_refusal([] { find_claims(""); }, {"rank"});
}

TEST(Claims, StopWhenToldAndCountWhatIsDone) {
  Threads threads(2);
  Index calls = 0;
  const auto stop_later = [&](const ClaimProgress&) { return ++calls > 2; };
  const Claim& claim = *find_claims("over-parametrization").front();
  const ClaimResult result = test_claim(claim, {.tasks = 50, .progress = stop_later}, threads);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.tasks, 2);
  const ClaimResult none =
      test_claim(claim, {.tasks = 1, .progress = [](const ClaimProgress&) { return true; }}, threads);
  EXPECT_FALSE(none.complete);
  EXPECT_EQ(none.tasks, 0);
  EXPECT_TRUE(std::isnan(none.worst));
}

TEST(Claims, CounterExamplesAreTaskFiles) {
  Threads threads(2);
  const ClaimResult result = test_claim(*find_claims("global").front(), {.tasks = 4, .seed = 2}, threads);
  ASSERT_TRUE(result.counterexample);
  const test::Scratch scratch;
  save_task(scratch.file("task.npz"), result.counterexample->task, result.counterexample->extras, false);
  test::expect_same_task(load_task(scratch.file("task.npz"), threads), result.counterexample->task);
  EXPECT_TRUE(NpzFile(scratch.file("task.npz")).has("x_W0"));
}

TEST(Claims, AGradientWithoutADirectionIsTheWorstOfAll) {
  const RowMatrix first = RowMatrix::Constant(1, 1, 1), second = RowMatrix::Constant(1, 1, 2);
  Slopes slopes;
  slopes.add(-0.5, first);
  EXPECT_EQ(slopes.largest, -0.5);
  slopes.add(1e-14, first);
  slopes.add(std::nan(""), second);
  slopes.add(-0.1, first);  // a later slope does not replace the one that is NaN
  EXPECT_EQ(slopes.largest, kUnmeasured);
  EXPECT_EQ(slopes.where, second);
  EXPECT_EQ(slopes.points, 4);
  EXPECT_EQ(slopes.undecided, 1);
}

TEST(Claims, SayWhichArithmeticTheyUse) {
  // docs/claims.md: runs use exact arithmetic unless stated otherwise.
  EXPECT_NE(find_claims("equivalence-relu").front()->tested.find("plain arithmetic"), std::string_view::npos);
}

TEST(Claims, RefuseBatchesOfAnotherExperiment) {
  Threads threads(1);
  const Claim& claim = *find_claims("rank").front();
  std::vector<ClaimBatch> batches;
  ClaimSettings settings{.tasks = 4,
                         .keep = [&](const ClaimBatch& batch, const CounterExample*) { batches.push_back(batch); }};
  test_claim(claim, settings, threads);
  ASSERT_EQ(batches.size(), 1U);
  const ClaimBatch right = batches.front();
  for (const auto spoil : {+[](ClaimBatch& batch) { batch.pop_back(); }, +[](ClaimBatch& batch) { batch.push_back(1); },
                           +[](ClaimBatch& batch) { batch.front() = 0.5; }, +[](ClaimBatch& batch) { batch.clear(); },
                           +[](ClaimBatch& batch) { batch.front() = -1; }}) {
    batches = {right};
    spoil(batches.front());
    settings.done = batches;
    test::expect_refusal([&] { test_claim(claim, settings, threads); }, {"not those of this experiment"});
  }
}

TEST(Claims, RefuseToTestFewerThanNoTasks) {
  Threads threads(1);
  test::expect_refusal([&] { test_claim(claims().front(), {.tasks = -1}, threads); }, {"tasks = -1"});
}

}  // namespace
}  // namespace attsvm
