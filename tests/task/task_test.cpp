#include "attsvm/task.h"

#include <cmath>
#include <limits>

#include "support.h"

namespace attsvm {
namespace {

using test::expect_refusal;

Array real(std::vector<double> numbers, std::vector<Index> shape) {
  return Array::own(std::move(numbers), std::move(shape));
}
Array whole(std::vector<Index> numbers) {
  const auto size = static_cast<Index>(numbers.size());
  return Array::own(std::move(numbers), {size});
}

/// Two sequences of three tokens in the plane, prompt attention.
TaskArrays two_by_three() { return {.tokens = real({1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 2, 2}, {2, 3, 2})}; }

void refused(const TaskArrays& arrays, const std::vector<std::string>& words) {
  expect_refusal([&] { AttentionTask task(arrays); }, words);
}

TEST(Task, PromptCrossSelfAndCausalFillOneStruct) {
  const AttentionTask prompt(two_by_three());
  EXPECT_EQ(prompt.kind(), AttentionKind::prompt);
  EXPECT_EQ(prompt.queries(), 2);
  EXPECT_EQ(prompt.query_size(), 1);
  EXPECT_EQ(prompt.query(1)(0), 1);
  EXPECT_FALSE(prompt.causal());

  auto arrays = two_by_three();
  arrays.queries = real({1, 2, 3, 4, 5, 6}, {2, 3});
  const AttentionTask cross(arrays);
  EXPECT_EQ(cross.kind(), AttentionKind::cross);
  EXPECT_EQ(cross.query(1), Eigen::Vector3d(4, 5, 6));

  arrays = two_by_three();
  arrays.query_token = whole({2, 0, 1});
  arrays.sequence = whole({0, 1, 1});
  arrays.visible = whole({3, 1, 2});
  const AttentionTask self(arrays);
  EXPECT_EQ(self.kind(), AttentionKind::self);
  EXPECT_EQ(self.query(0), Eigen::Vector2d(1, 1));
  EXPECT_EQ(self.query(1), Eigen::Vector2d(2, 0));
  EXPECT_EQ(self.query(2), Eigen::Vector2d(0, 2));
  EXPECT_TRUE(self.causal());
}

TEST(Task, LargeArraysAreNotCopied) {
  const std::vector<double> tokens{1, 2, 3, 4, 5, 6, 7, 8}, keys{1, 2, 3, 4};
  const AttentionTask task(
      {.tokens = Array::view(tokens.data(), {2, 2, 2}), .keys = Array::view(keys.data(), {2, 2, 1})});
  EXPECT_EQ(task.values(1).data(), tokens.data() + 4);
  EXPECT_EQ(task.keys(1).data(), keys.data() + 2);
  EXPECT_EQ(task.key_size(), 1);
  EXPECT_EQ(task.value_size(), 2);
  const std::vector<float> single{1, 2, 3, 4};
  EXPECT_EQ(AttentionTask({.tokens = Array::view(single.data(), {1, 2, 2})}).keys(0)(1, 1), 4);
}

TEST(Task, RaggedSequences) {
  const AttentionTask task({.tokens = real({1, 2, 3, 4, 5, 6}, {6, 1}), .offsets = whole({0, 1, 4, 6})});
  EXPECT_TRUE(task.ragged());
  EXPECT_EQ(task.sequences(), 3);
  EXPECT_EQ(task.longest(), 3);
  EXPECT_EQ(task.length(2), 2);
  EXPECT_EQ(task.keys(1)(2, 0), 4);
  EXPECT_EQ(task.visible(0), 1);
}

TEST(Task, CopiesStayValid) {
  std::unique_ptr<AttentionTask> original = std::make_unique<AttentionTask>(two_by_three());
  const AttentionTask copy = *original;
  original.reset();
  EXPECT_EQ(copy.keys(1)(2, 1), 2);
}

TEST(Task, TokensAreValidated) {
  refused({}, {"tokens is missing"});
  refused({.tokens = real({1, 2}, {2})}, {"tokens has shape (2)", "(n,T,d)"});
  refused({.tokens = real({1, 2}, {2, 1})}, {"tokens has shape (2,1)", "offsets"});
  refused({.tokens = real({}, {1, 0, 2})}, {"tokens has shape (1,0,2)", "at least 1"});
  refused({.tokens = real({1, std::nan("")}, {1, 2, 1})}, {"tokens[0,1,0] = nan", "finite"});
  refused({.tokens = real({1, HUGE_VAL}, {1, 1, 2})}, {"tokens[0,0,1] = inf"});
  refused({.tokens = real({1, 2}, {2, 1}), .offsets = whole({0, 0, 2})},
          {"offsets[1] = 0", "no sequence may be empty"});
  refused({.tokens = real({1, 2}, {2, 1}), .offsets = whole({1, 2})}, {"offsets[0] = 1", "must be 0"});
  constexpr Index kLeast = std::numeric_limits<Index>::min();  // whose sum overflows
  refused({.tokens = real({1, 2}, {2, 1}), .offsets = whole({kLeast, kLeast})}, {"must be 0"});
  refused({.tokens = real({1, 2, 3}, {3, 1}), .offsets = whole({1, 2})}, {"look like lengths"});
  refused({.tokens = real({1, 2}, {2, 1}), .offsets = whole({0, 3})}, {"offsets[1] = 3", "number of tokens, 2"});
  refused({.tokens = real({1, 2}, {2, 1}), .offsets = whole({0})}, {"offsets has shape (1)"});
  refused({.tokens = real({1, 2}, {1, 2, 1}), .keys = real({1, 2, 3}, {1, 3, 1})},
          {"keys has shape (1,3,1)", "(1,2,1)"});
  refused({.tokens = real({1, 2}, {1, 2, 1}), .keys = real({1, -HUGE_VAL}, {1, 2, 1})}, {"keys[0,1,0] = -inf"});
}

TEST(Task, QueriesAreValidated) {
  auto arrays = two_by_three();
  arrays.queries = real({1, 2}, {2, 1});
  arrays.query_token = whole({0, 0});
  refused(arrays, {"queries and query_token"});
  arrays = two_by_three();
  arrays.queries = real({1, 2, 3}, {3, 1});
  refused(arrays, {"sequence is missing", "3 queries and 2 sequences"});
  arrays.sequence = whole({0, 1, 2});
  refused(arrays, {"sequence[2] = 2", "0 to 1"});
  arrays.sequence = whole({0, 1, 1});
  arrays.visible = whole({3, 0, 3});
  refused(arrays, {"visible[1] = 0", "1 to 3"});
  arrays.visible = whole({3, 3, 4});
  refused(arrays, {"visible[2] = 4", "1 to 3"});
  arrays = two_by_three();
  arrays.query_token = whole({0, 3});
  refused(arrays, {"query_token[1] = 3", "0 to 2"});
  arrays = two_by_three();
  arrays.query_token = real({0, 1}, {2});
  refused(arrays, {"query_token has type float64", "integers"});
}

TEST(Task, LabelsHeadsAndSelectionsAreValidated) {
  auto arrays = two_by_three();
  arrays.labels = real({1, 0.5}, {2});
  refused(arrays, {"labels[1] = 0.5", "-1 or +1"});
  arrays.labels = real({1, 1, 1}, {3});
  refused(arrays, {"labels has shape (3)", "(2)"});
  arrays = two_by_three();
  arrays.head = real({1, 2, 3}, {3});
  refused(arrays, {"head has shape (3)", "(2)"});
  arrays.head_hidden = real({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_NO_THROW(AttentionTask{arrays});
  arrays.head_quadratic = Array::number(1);
  refused(arrays, {"head_hidden and head_quadratic"});
  arrays = two_by_three();
  arrays.head_quadratic = Array::number(1);
  refused(arrays, {"head is missing"});
  arrays = two_by_three();
  arrays.select = whole({0, 3});
  refused(arrays, {"select[1] = 3", "0 to 2"});
  arrays.select = Array::own(std::vector<bool>{true, false, false, false, false, false}, {2, 3});
  refused(arrays, {"select[1] keeps no token"});
  arrays.select = Array::own(std::vector<bool>{true, false, false, false, false, true}, {2, 3});
  arrays.visible = whole({3, 2});
  refused(arrays, {"select[1,2] = True", "0 to 1"});
  arrays.select = Array::own(std::vector<bool>{true, true}, {2, 1});
  refused(arrays, {"select has type bool and shape (2,1)", "(2,3) bool"});
}

TEST(Head, GradientsMatchFiniteDifferences) {
  const Eigen::VectorXd v = Eigen::VectorXd::LinSpaced(3, -1, 2), x = Eigen::Vector3d(0.3, -0.7, 1.1);
  Eigen::MatrixXd B(3, 3);
  B << 1, -2, 0.5, 0.2, 1, -1, 0.7, 0.1, 2;
  for (const Head& head : {Head{.kind = HeadKind::linear, .v = v}, Head{.kind = HeadKind::hidden, .v = v, .B = B},
                           Head{.kind = HeadKind::quadratic, .v = v, .lambda = 0.4}}) {
    const Eigen::VectorXd gradient = head.gradient(x);
    for (Index k = 0; k < 3; ++k) {
      const Eigen::VectorXd step = 1e-6 * Eigen::VectorXd::Unit(3, k);
      EXPECT_NEAR(gradient(k), (head.value(x + step) - head.value(x - step)) / 2e-6, 1e-8) << name_of(head.kind);
    }
  }
}

TEST(Score, OptimalTokensAndTies) {
  auto arrays = two_by_three();
  expect_refusal([&] { optimal_tokens(AttentionTask(arrays)); }, {"head is missing"});
  arrays.head = real({1, 0}, {2});
  arrays.labels = real({1, -1}, {2});
  const OptimalTokens optimal = optimal_tokens(AttentionTask(arrays));
  EXPECT_EQ(optimal.selection.first(0), 0);
  EXPECT_EQ(optimal.selection.first(1), 1);
  ASSERT_EQ(optimal.ties.size(), 1U);
  EXPECT_EQ(optimal.ties[0].query, 0);
  EXPECT_EQ(optimal.ties[0].tokens, (std::vector<Index>{0, 2}));
  arrays.visible = whole({2, 3});
  EXPECT_TRUE(optimal_tokens(AttentionTask(arrays)).ties.empty()) << "hidden tokens do not tie";
}

TEST(Score, TiesWithinToleranceAreReported) {
  const auto ties = [](double second) {
    return optimal_tokens(AttentionTask({.tokens = real({1, second}, {1, 2, 1}), .head = real({1}, {1})})).ties.size();
  };
  EXPECT_EQ(ties(1 + 1e-13), 1U);
  EXPECT_EQ(ties(1 + 1e-11), 0U);
}

TEST(Separability, ConditionInWords) {
  EXPECT_FALSE(separability_condition(AttentionTask(two_by_three())).holds) << "prompt: 4 tokens to beat in the plane";
  auto arrays = two_by_three();
  arrays.queries = real({1, 0, 0, 1}, {2, 2});
  EXPECT_TRUE(separability_condition(AttentionTask(arrays)).holds);
  arrays.queries = real({1, 0, 2, 0}, {2, 2});
  const auto condition = separability_condition(AttentionTask(arrays));
  EXPECT_FALSE(condition.holds);
  EXPECT_EQ(condition.query_rank, 1);
  EXPECT_NE(condition.reason.find("span only 1"), std::string::npos);
  arrays.queries = real({1, 2}, {2, 1});
  EXPECT_FALSE(separability_condition(AttentionTask(arrays)).holds);
}

TEST(Fixtures, AllReadValidateAndRoundTrip) {
  const test::Scratch scratch;
  Threads threads(1);
  const auto paths = test::fixture_tasks();
  ASSERT_GT(paths.size(), 50U);
  for (const std::string& path : paths) {
    const AttentionTask task = load_task(path, threads);
    save_task(scratch.file("copy.npz"), task, {}, true);
    test::expect_same_task(task, load_task(scratch.file("copy.npz"), threads));
  }
}

TEST(Fixtures, OptimalTokensAgree) {
  Threads threads(1);
  int compared = 0;
  for (const std::string& path : test::fixture_tasks()) {
    const NpzFile expect(path.substr(0, path.size() - 9) + ".expect.npz");
    if (!expect.has("optimal")) continue;
    const AttentionTask task = load_task(path, threads);
    const auto wanted = to_indices(expect.read("optimal", threads), "optimal");
    EXPECT_EQ(optimal_tokens(task).selection, Selection::single(wanted)) << path;
    ++compared;
  }
  EXPECT_GE(compared, 12);
}

}  // namespace
}  // namespace attsvm
