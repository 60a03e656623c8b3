#include "attsvm/generate.h"

#include <array>
#include <cmath>

#include "base/memory.h"
#include "base/refuse.h"
#include "task/draw.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array kKinds{
    RecipeKind{"random", "cross attention as published: unit Gaussian tokens, queries and head, random labels", {}},
    RecipeKind{"self", "the same, the first token of each sequence asks", {.pattern = QueryPattern::self}},
    RecipeKind{"prompt", "the same, one prompt vector asks everywhere", {.pattern = QueryPattern::prompt}},
    RecipeKind{
        "causal", "the same, every token asks and sees the tokens up to itself", {.pattern = QueryPattern::causal}},
    RecipeKind{"ragged", "cross attention, sequences of 2 to T tokens", {.shortest = 2}},
    RecipeKind{"relu", "cross attention, head with a hidden ReLU layer", {.head = HeadKind::hidden}},
    RecipeKind{"orthonormal", "cross attention, orthonormal tokens (T <= d)", {.law = Law::orthonormal, .T = 6}},
    RecipeKind{"quadratic",
               "orthonormal tokens, head v'x - lambda |x|^2, labels +1",
               {.law = Law::orthonormal, .T = 6, .head = HeadKind::quadratic}},
    RecipeKind{
        "separable", "selection = argmax of a random W0 (kept as x_W0), full rank or --rank", {.law = Law::separable}},
    RecipeKind{"planted",
               "the optimal W and multipliers are known (x_planted_W, x_planted_dual, x_planted_objective)",
               {.law = Law::planted}},
    RecipeKind{"infeasible", "no W keeps the selection; the proof is known (x_certificate)", {.law = Law::infeasible}},
    RecipeKind{"nexttoken",
               "next-token prediction: random embeddings, sequences and labels",
               {.law = Law::next_token, .n = 6, .T = 4, .d = 8, .vocabulary = 6}},
    RecipeKind{
        "single-global", "one input in the plane whose only limit is global", {.law = Law::single_input, .c = 0.9}},
    RecipeKind{"single-local", "one input in the plane with a local limit", {.law = Law::single_input, .c = 0}},
    RecipeKind{"multi-input", "three noisy inputs in the plane, one good token each", {.law = Law::multi_input}},
    RecipeKind{"joint-tight",
               "three inputs for training head and prompt, all support vectors",
               {.law = Law::joint_training, .c = 1}},
    RecipeKind{"joint-loose", "the same, the third input is no support vector", {.law = Law::joint_training, .c = 1.5}},
    RecipeKind{"losses", "two inputs, the first one's score is --C", {.law = Law::losses, .c = 1}},
};

bool is_small_data_set(Law law) { return law >= Law::single_input; }

void at_least(std::string_view name, Index value, Index least) {
  if (value < least) refuse("{} = {}; must be at least {}", name, value, least);
}

/// Fills in sizes that were left out. InputError if the law does not allow the recipe.
Recipe complete(Recipe r) {
  if (is_small_data_set(r.law)) {
    if (r.n != 0 || r.T != 0 || r.d != 0 || r.dz != 0 || r.shortest != 0 || r.rank != 0 || r.head != HeadKind::linear) {
      refuse("this data set has fixed sizes and head; leave n, T, d, dz, shortest, rank and head out");
    }
    return r;
  }
  const auto fill = [](Index& size, Index standard) { size = size == 0 ? standard : size; };
  fill(r.n, 6);
  fill(r.T, 8);
  fill(r.d, 10);
  if (r.dz != 0 && r.pattern != QueryPattern::cross)
    refuse("dz = {}; only cross attention has a query size of its own", r.dz);
  fill(r.dz, r.d);
  fill(r.shortest, r.T);
  fill(r.hidden, r.d);
  at_least("n", r.n, 1);
  at_least("T", r.T, 1);
  at_least("d", r.d, 1);
  at_least("dz", r.dz, 1);
  at_least("shortest", r.shortest, 1);
  at_least("hidden", r.hidden, 1);
  at_least("rank", r.rank, 0);
  if (r.law == Law::next_token) {
    if (r.pattern != QueryPattern::cross || r.head != HeadKind::linear || r.dz != r.d)
      refuse("a next-token task has neither a head nor queries of its own; leave attention, head and dz out");
    fill(r.vocabulary, 6);
    at_least("vocabulary", r.vocabulary, 1);
  } else if (r.vocabulary != 0) {
    refuse("vocabulary = {}; only next-token draws have one", r.vocabulary);
  }
  if (r.shortest > r.T) refuse("shortest = {}; must be at most T = {}", r.shortest, r.T);
  constexpr double kMost = 1e15;  // bytes: more than any machine has, and safe to multiply
  const double largest = static_cast<double>(std::max(r.T, r.dz)) * static_cast<double>(std::max(r.n, r.d)) *
                         static_cast<double>(std::max({r.d, r.dz, r.vocabulary})) * 8;
  if (largest > kMost) refuse("n = {}, T = {}, d = {}, dz = {} is too large", r.n, r.T, r.d, r.dz);
  if (r.law != Law::next_token)  // whose tokens are ids
    require_memory(8 * static_cast<double>(r.n) * static_cast<double>(r.T) * static_cast<double>(r.d), "this task");
  if (r.law == Law::orthonormal && r.T > r.d) refuse("T = {}; orthonormal tokens need T <= d = {}", r.T, r.d);
  const bool has_selection = r.law == Law::planted || r.law == Law::infeasible;
  if (has_selection && r.pattern != QueryPattern::cross && r.pattern != QueryPattern::prompt) {
    refuse("this kind is drawn for cross and prompt attention only");
  }
  if (r.rank != 0 && r.law != Law::separable && r.law != Law::planted)
    refuse("rank = {}; only separable and planted draws have one", r.rank);
  const Index full = std::min(std::min(r.d, r.dz), r.law == Law::planted ? r.n : r.d);
  if (r.rank > full) {
    refuse("rank = {}; must be at most {} = {}", r.rank, r.law == Law::planted ? "min(n, d, dz)" : "min(d, dz)", full);
  }
  if (r.head != HeadKind::linear && r.law != Law::random && r.law != Law::orthonormal) {
    refuse("head {}; only random and orthonormal draws have a head", name_of(r.head));
  }
  if (r.law == Law::planted) at_least("shortest", r.shortest, 2);
  if (r.law == Law::infeasible) at_least("shortest", r.shortest, r.n == 1 ? 3 : 2);
  return r;
}

void draw_random_tokens(Draft& draft) {
  draft.tokens = draft.normals(kTokens, draft.offsets.back(), draft.recipe.d);
  for (Index t = 0; t < draft.tokens.rows(); ++t) scale_to_unit(draft.tokens.row(t).data(), draft.recipe.d);
  if (draft.recipe.pattern == QueryPattern::cross) {
    draft.queries = draft.normals(kQueries, draft.recipe.n, draft.recipe.dz);
    for (Index i = 0; i < draft.recipe.n; ++i) scale_to_unit(draft.queries.row(i).data(), draft.recipe.dz);
  }
}

void draw_orthonormal_tokens(Draft& draft) {
  draw_random_tokens(draft);
  for (Index s = 0; s < draft.recipe.n; ++s) {
    RowMatrix block = draft.tokens.middleRows(draft.offsets[static_cast<std::size_t>(s)], draft.length(s));
    orthonormalize(block);
    draft.tokens.middleRows(draft.offsets[static_cast<std::size_t>(s)], draft.length(s)) = block;
  }
}

/// The task arrays for the tokens and the query pattern.
TaskArrays assemble(const Draft& draft) {
  const Recipe& r = draft.recipe;
  TaskArrays arrays;
  if (r.shortest < r.T) {
    arrays.tokens = Array::own(draft.tokens);
    arrays.offsets = Array::own(draft.offsets, {r.n + 1});
  } else {
    arrays.tokens = Array::own(draft.tokens);
    arrays.tokens.shape = {r.n, r.T, r.d};
  }
  switch (r.pattern) {
    case QueryPattern::cross:
      arrays.queries = Array::own(draft.queries);
      break;
    case QueryPattern::self:
      arrays.query_token = Array::own(std::vector<Index>(static_cast<std::size_t>(r.n), 0), {r.n});
      break;
    case QueryPattern::prompt:
      break;
    case QueryPattern::causal: {
      std::vector<Index> sequence, token, visible;
      for (Index s = 0; s < r.n; ++s) {
        for (Index t = 0; t < draft.length(s); ++t) {
          sequence.push_back(s);
          token.push_back(t);
          visible.push_back(t + 1);
        }
      }
      const auto q = static_cast<Index>(sequence.size());
      arrays.sequence = Array::own(std::move(sequence), {q});
      arrays.query_token = Array::own(std::move(token), {q});
      arrays.visible = Array::own(std::move(visible), {q});
      break;
    }
  }
  if (!draft.select.empty()) arrays.select = Array::own(draft.select, {static_cast<Index>(draft.select.size())});
  return arrays;
}

void add_head_and_labels(const Draft& draft, TaskArrays& arrays) {
  const Recipe& r = draft.recipe;
  const Index q = arrays.sequence.given() ? arrays.sequence.size() : r.n;
  if (r.head != HeadKind::quadratic) {
    RowMatrix labels = draft.normals(kLabels, q, 1);
    for (Index i = 0; i < q; ++i) labels(i) = labels(i) < 0 ? -1 : 1;
    arrays.labels = Array::own(labels);
    arrays.labels.shape = {q};
  }
  if (r.head == HeadKind::none) return;
  if (r.head == HeadKind::hidden) {
    RowMatrix B = draft.normals(kHidden, r.d, r.hidden);
    scale_to_unit(B.data(), B.size());
    arrays.head_hidden = Array::own(B);
    arrays.head = Array::own(std::vector<double>(static_cast<std::size_t>(r.hidden), 1.0), {r.hidden});
    return;
  }
  RowMatrix v = draft.normals(kHead, 1, r.d);
  scale_to_unit(v.data(), r.d);
  arrays.head = Array::own(v);
  arrays.head.shape = {r.d};
  if (r.head == HeadKind::quadratic) arrays.head_quadratic = Array::number(r.lambda);
}

/// W0 (d,dz): Gaussian, or a product of Gaussian factors of inner size `rank`.
RowMatrix draw_teacher(const Draft& draft, Index dz) {
  const Recipe& r = draft.recipe;
  if (r.rank == 0 || r.rank >= std::min(r.d, dz)) return draft.normals(kTeacherLeft, r.d, dz);
  const RowMatrix left = draft.normals(kTeacherLeft, r.d, r.rank), right = draft.normals(kTeacherRight, dz, r.rank);
  RowMatrix W(r.d, dz);
  for (Index a = 0; a < r.d; ++a) {
    for (Index b = 0; b < dz; ++b) W(a, b) = plain_dot(left.row(a).data(), right.row(b).data(), r.rank);
  }
  return W;
}

Drawn draw_separable(const Draft& draft) {
  TaskArrays arrays = assemble(draft);
  const AttentionTask task(arrays);
  const RowMatrix W = draw_teacher(draft, task.query_size());
  std::vector<Index> select;
  std::vector<double> u(static_cast<std::size_t>(task.key_size()));
  for (Index i = 0; i < task.queries(); ++i) {
    for (Index a = 0; a < task.key_size(); ++a) {
      u[static_cast<std::size_t>(a)] = plain_dot(W.row(a).data(), task.query(i).data(), task.query_size());
    }
    const ConstRows X = task.keys(task.sequence(i));
    Index best = 0;
    double top = plain_dot(X.row(0).data(), u.data(), task.key_size());
    for (Index t = 1; t < task.visible(i); ++t) {
      const double logit = plain_dot(X.row(t).data(), u.data(), task.key_size());
      if (logit > top) {
        top = logit;
        best = t;
      }
    }
    select.push_back(best);
  }
  arrays.select = Array::own(std::move(select), {task.queries()});
  return {AttentionTask(std::move(arrays)), {{"x_W0", Array::own(W)}}};
}

/// A task whose keys have the third coordinate of the tokens set to 0, whose head reads that coordinate, and which
/// selects the same token in every sequence.
TaskArrays planar(std::vector<double> tokens, Index n, Index T, Index selected) {
  std::vector<double> keys = tokens;
  for (std::size_t i = 2; i < keys.size(); i += 3) keys[i] = 0;
  return {.tokens = Array::own(std::move(tokens), {n, T, 3}),
          .keys = Array::own(std::move(keys), {n, T, 3}),
          .labels = Array::own(std::vector<double>(static_cast<std::size_t>(n), 1.0), {n}),
          .head = Array::own(std::vector<double>{0, 0, 1}, {3}),
          .select = Array::own(std::vector<Index>(static_cast<std::size_t>(n), selected), {n})};
}

TaskArrays small_data_set(const Recipe& r, const Random& random) {
  switch (r.law) {
    case Law::single_input:
      return planar({-0.1, 1, 1, 1, 0, 0.9, 0, 0, r.c}, 1, 3, 0);
    case Law::multi_input: {
      constexpr double kCentres[3][2] = {{1, 0}, {-1, 1}, {-0.5, -0.5}};
      std::vector<double> tokens;
      for (Index t = 0; t < 21; ++t) {
        const int group = t % 7 == 0 ? 0 : (t % 7 <= 3 ? 1 : 2);
        for (int k = 0; k < 2; ++k) {
          tokens.push_back(kCentres[group][k] + 0.2 * random.normal(static_cast<std::uint64_t>(2 * t + k)));
        }
        tokens.push_back(group == 0 ? 1 : 0.5);
      }
      return planar(std::move(tokens), 3, 7, 0);
    }
    case Law::losses:
      return planar({0, 0, 0, 1, 1, r.c, 0, 0, 0, 1, -1, 1}, 2, 2, 1);
    case Law::joint_training:
      return {.tokens = Array::own(std::vector<double>{0, 0, 1, 1, 0, 0, 1, -1, 0, 0, 0.5, r.c}, {3, 2, 2}),
              .labels = Array::own(std::vector<double>{1, -1, 1}, {3}),
              .select = Array::own(std::vector<Index>{1, 1, 1}, {3})};
    default:
      throw std::logic_error("not a small data set");
  }
}

}  // namespace

std::string_view name_of(Law law) {
  switch (law) {
    case Law::random:
      return "random";
    case Law::orthonormal:
      return "orthonormal";
    case Law::separable:
      return "separable";
    case Law::planted:
      return "planted";
    case Law::infeasible:
      return "infeasible";
    case Law::next_token:
      return "next token";
    case Law::single_input:
      return "single input";
    case Law::multi_input:
      return "multi input";
    case Law::joint_training:
      return "joint training";
    case Law::losses:
      return "losses";
  }
  throw std::logic_error("unknown law");
}

std::string_view name_of(QueryPattern pattern) {
  switch (pattern) {
    case QueryPattern::cross:
      return "cross";
    case QueryPattern::self:
      return "self";
    case QueryPattern::prompt:
      return "prompt";
    case QueryPattern::causal:
      return "causal";
  }
  throw std::logic_error("unknown query pattern");
}

std::string_view name_of(PlantedNorm norm) { return norm == PlantedNorm::frobenius ? "frobenius" : "nuclear"; }

std::span<const RecipeKind> recipe_kinds() { return kKinds; }

Drawn generate(const Recipe& recipe, std::uint64_t seed, std::uint32_t instance) {
  Draft draft{.recipe = complete(recipe), .seed = seed, .instance = instance};
  const Recipe& r = draft.recipe;
  if (is_small_data_set(r.law)) return {AttentionTask(small_data_set(r, draft.random(kTokens))), {}};

  draft.offsets = {0};
  for (Index s = 0; s < r.n; ++s) {
    const auto spread = static_cast<std::uint64_t>(r.T - r.shortest + 1);
    const auto extra = draft.random(kLengths).below(spread, static_cast<std::uint64_t>(s));
    draft.offsets.push_back(draft.offsets.back() + r.shortest + static_cast<Index>(extra));
  }
  if (r.law == Law::next_token) return {draw_next_token(draft), {}};
  switch (r.law) {
    case Law::orthonormal:
      draw_orthonormal_tokens(draft);
      break;
    case Law::planted:
      draw_planted(draft);
      break;
    case Law::infeasible:
      draw_random_tokens(draft);
      draw_infeasible(draft);
      break;
    default:
      draw_random_tokens(draft);
  }
  if (r.law == Law::separable) return draw_separable(draft);
  TaskArrays arrays = assemble(draft);
  if (r.law == Law::random || r.law == Law::orthonormal) add_head_and_labels(draft, arrays);
  return {AttentionTask(std::move(arrays)), std::move(draft.extras)};
}

}  // namespace attsvm
