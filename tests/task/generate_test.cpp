#include "attsvm/generate.h"

#include <fmt/format.h>

#include <cmath>

#include "linear_algebra.h"
#include "support.h"

namespace attsvm {
namespace {

using test::expect_refusal;

Recipe recipe_of(std::string_view name) {
  for (const RecipeKind& kind : recipe_kinds()) {
    if (kind.name == name) return kind.recipe;
  }
  throw std::logic_error("no such kind");
}

/// FNV-1a over every array of a draw, in file order.
std::uint64_t hash_of(const Drawn& drawn) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](const Array& array) {
    for (const std::byte b : test::bytes_of(array)) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  };
  for (const TaskField& field : task_fields()) {
    if ((drawn.task.arrays().*field.member).given()) take(drawn.task.arrays().*field.member);
  }
  for (const auto& [name, array] : drawn.extras) take(array);
  return hash;
}

/// The margin rows of a single-token selection, in the order query, then token: δ and the query they belong to.
struct Rows {
  RowMatrix delta;
  std::vector<Index> query;
};

Rows rows_of(const AttentionTask& task) {
  Rows rows;
  std::vector<Eigen::RowVectorXd> list;
  for (Index i = 0; i < task.queries(); ++i) {
    const ConstRows X = task.keys(task.sequence(i));
    const Index kept = task.select()->first(i);
    for (Index t = 0; t < task.visible(i); ++t) {
      if (t == kept) continue;
      list.emplace_back(X.row(kept) - X.row(t));
      rows.query.push_back(i);
    }
  }
  rows.delta.resize(static_cast<Index>(list.size()), task.key_size());
  for (std::size_t k = 0; k < list.size(); ++k) rows.delta.row(static_cast<Index>(k)) = list[k];
  return rows;
}

/// Σ λ_k δ_k z_kᵀ
Eigen::MatrixXd weighted_sum(const AttentionTask& task, const Rows& rows, std::span<const double> weights) {
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(task.key_size(), task.query_size());
  for (std::size_t k = 0; k < weights.size(); ++k) {
    sum += weights[k] * rows.delta.row(static_cast<Index>(k)).transpose() * task.query(rows.query[k]).transpose();
  }
  return sum;
}

void expect_planted_optimum(const Drawn& drawn, PlantedNorm norm) {
  const AttentionTask& task = drawn.task;
  const Rows rows = rows_of(task);
  const auto dual = f64_span(drawn.extras.at("x_planted_dual"));
  const ConstRows W(f64_span(drawn.extras.at("x_planted_W")).data(), task.key_size(), task.query_size());
  const double objective = f64_span(drawn.extras.at("x_planted_objective"))[0];
  ASSERT_EQ(dual.size(), rows.query.size());
  double total = 0;
  for (std::size_t k = 0; k < dual.size(); ++k) {
    const double value = rows.delta.row(static_cast<Index>(k)) * W * task.query(rows.query[k]);
    EXPECT_GE(value, 1 - 1e-12);
    EXPECT_GE(dual[k], 0);
    EXPECT_TRUE(dual[k] == 0 || std::abs(value - 1) < 1e-12) << "complementary slackness";
    total += dual[k];
  }
  const Eigen::VectorXd primal = test::svd_of(W).sigma;
  const Eigen::VectorXd slope = test::svd_of(weighted_sum(task, rows, dual)).sigma;
  const bool nuclear = norm == PlantedNorm::nuclear;
  EXPECT_NEAR(nuclear ? primal.sum() : primal.norm(), objective, 1e-12 * objective);
  EXPECT_NEAR(nuclear ? slope.maxCoeff() : slope.norm(), 1, 1e-12) << "dual norm one";
  EXPECT_NEAR(total, objective, 1e-12 * objective) << "no gap";
}

TEST(Generate, PlantedOptimaAreOptimal) {
  for (const PlantedNorm norm : {PlantedNorm::frobenius, PlantedNorm::nuclear}) {
    for (const Recipe& sizes :
         {Recipe{}, Recipe{.n = 30, .T = 5, .d = 4, .dz = 7}, Recipe{.n = 3, .T = 9, .d = 12, .rank = 1},
          Recipe{.n = 8, .shortest = 2, .pattern = QueryPattern::prompt}, Recipe{.n = 1, .T = 2, .d = 1}}) {
      Recipe recipe = sizes;
      recipe.law = Law::planted;
      recipe.norm = norm;
      for (std::uint32_t instance = 0; instance < 5; ++instance)
        expect_planted_optimum(generate(recipe, 3, instance), norm);
    }
  }
}

TEST(Generate, InfeasibleDrawsCarryAProof) {
  for (const Recipe& sizes :
       {Recipe{}, Recipe{.n = 1}, Recipe{.n = 2, .T = 2, .d = 3}, Recipe{.n = 5, .pattern = QueryPattern::prompt},
        Recipe{.n = 4, .T = 6, .d = 3, .dz = 9, .shortest = 2}}) {
    Recipe recipe = sizes;
    recipe.law = Law::infeasible;
    const Drawn drawn = generate(recipe, 11);
    const Rows rows = rows_of(drawn.task);
    const auto weights = f64_span(drawn.extras.at("x_certificate"));
    double total = 0, scale = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      EXPECT_GE(weights[k], 0);
      total += weights[k];
      scale += weights[k] * rows.delta.row(static_cast<Index>(k)).norm() * drawn.task.query(rows.query[k]).norm();
    }
    EXPECT_NEAR(total, 1, 1e-14);
    EXPECT_LE(weighted_sum(drawn.task, rows, weights).norm(), 1e-13 * scale);
  }
}

TEST(Generate, SeparableSelectionIsTheTeachersArgmax) {
  for (const QueryPattern pattern :
       {QueryPattern::cross, QueryPattern::self, QueryPattern::prompt, QueryPattern::causal}) {
    const Drawn drawn = generate({.law = Law::separable, .shortest = 3, .pattern = pattern, .rank = 2}, 5);
    const AttentionTask& task = drawn.task;
    const ConstRows W(f64_span(drawn.extras.at("x_W0")).data(), task.key_size(), task.query_size());
    EXPECT_EQ(test::rank_of(W, 1e-12), std::min<Index>(2, task.query_size()));
    for (Index i = 0; i < task.queries(); ++i) {
      const Eigen::VectorXd logits = task.keys(task.sequence(i)).topRows(task.visible(i)) * (W * task.query(i));
      EXPECT_EQ(logits(task.select()->first(i)), logits.maxCoeff());
    }
  }
}

TEST(Generate, RandomDrawsAreAsPublished) {
  const AttentionTask task = generate({.n = 40, .T = 9, .d = 6, .dz = 4}, 1).task;
  Index positive = 0;
  for (Index i = 0; i < 40; ++i) {
    EXPECT_LT((task.keys(i).rowwise().norm().array() - 1).abs().maxCoeff(), 1e-14);
    EXPECT_NEAR(task.query(i).norm(), 1, 1e-14);
    positive += task.label(i) > 0 ? 1 : 0;
  }
  EXPECT_NEAR(task.head().v.norm(), 1, 1e-14);
  EXPECT_GT(positive, 5);
  EXPECT_LT(positive, 35);
  const AttentionTask relu = generate(recipe_of("relu"), 1).task;
  EXPECT_NEAR(relu.head().B.norm(), 1, 1e-14);
  EXPECT_EQ(relu.head().v, Eigen::VectorXd::Ones(10));
  const AttentionTask tokens = generate(recipe_of("orthonormal"), 1).task;
  EXPECT_LT((tokens.keys(2) * tokens.keys(2).transpose() - RowMatrix::Identity(6, 6)).norm(), 1e-13);
  const AttentionTask causal = generate(recipe_of("causal"), 1).task;
  EXPECT_EQ(causal.queries(), 48);
  EXPECT_EQ(causal.visible(10), 3);
  EXPECT_EQ(causal.query(10), causal.keys(1).row(2).transpose());
}

TEST(Generate, SmallDataSetsMatchTheReferences) {
  Threads threads(1);
  const auto reference = [&](const std::string& name) { return load_task(test::fixture(name + ".task.npz"), threads); };
  const auto expect_near = [](const AttentionTask& a, const AttentionTask& b) {
    ASSERT_EQ(a.sequences(), b.sequences());
    for (Index s = 0; s < a.sequences(); ++s) {
      EXPECT_LT((a.values(s) - b.values(s)).norm(), 1e-6);  // the references were rounded to single precision
      EXPECT_LT((a.keys(s) - b.keys(s)).norm(), 1e-6);
    }
    EXPECT_EQ(a.select(), b.select());
    EXPECT_EQ(a.head().v, b.head().v);
  };
  expect_near(generate(recipe_of("single-global"), 0).task, reference("single_global"));
  expect_near(generate(recipe_of("single-local"), 0).task, reference("single_local"));
  expect_near(generate(recipe_of("joint-tight"), 0).task, reference("joint_tight"));
  expect_near(generate(recipe_of("joint-loose"), 0).task, reference("joint_loose"));
  const AttentionTask noisy = generate(recipe_of("multi-input"), 0).task, noisy_reference = reference("multi_input");
  EXPECT_EQ(noisy.select(), noisy_reference.select());
  for (Index s = 0; s < 3; ++s) EXPECT_EQ(noisy.values(s).col(2), noisy_reference.values(s).col(2));
}

// The same seed must give these bytes on every machine, with every compiler and library.
TEST(Generate, EveryKindKeepsItsBytes) {
  const std::map<std::string_view, std::uint64_t> hashes{
#include "generate_hashes.inc"
  };
  EXPECT_EQ(hashes.size(), recipe_kinds().size());
  for (const RecipeKind& kind : recipe_kinds()) {
    const std::uint64_t hash = hash_of(generate(kind.recipe, 2024, 3));
    EXPECT_TRUE(hashes.contains(kind.name) && hashes.at(kind.name) == hash)
        << fmt::format("{{\"{}\", {:#x}}},", kind.name, hash);
  }
}

TEST(Generate, SeedAndInstanceMatter) {
  EXPECT_EQ(hash_of(generate({}, 1, 2)), hash_of(generate({}, 1, 2)));
  EXPECT_NE(hash_of(generate({}, 1, 2)), hash_of(generate({}, 1, 3)));
  EXPECT_NE(hash_of(generate({}, 1, 2)), hash_of(generate({}, 2, 2)));
}

TEST(Generate, WhatCannotBeDrawnIsRefused) {
  expect_refusal([] { generate({.n = -1}, 0); }, {"n = -1", "at least 1"});
  expect_refusal([] { generate({.T = 4, .shortest = 5}, 0); }, {"shortest = 5", "T = 4"});
  expect_refusal([] { generate({.law = Law::orthonormal, .T = 11}, 0); }, {"T = 11", "d = 10"});
  expect_refusal([] { generate({.law = Law::planted, .pattern = QueryPattern::self}, 0); }, {"cross and prompt"});
  expect_refusal([] { generate({.law = Law::planted, .T = 1}, 0); }, {"shortest = 1"});
  expect_refusal([] { generate({.law = Law::losses, .n = 3}, 0); }, {"fixed sizes"});
  expect_refusal([] { generate({.dz = 3, .pattern = QueryPattern::self}, 0); }, {"dz = 3"});
  expect_refusal([] { generate({.n = Index{1} << 40, .T = Index{1} << 40, .d = Index{1} << 40}, 0); }, {"too large"});
}

}  // namespace
}  // namespace attsvm
