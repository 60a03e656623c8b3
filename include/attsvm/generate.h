#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "attsvm/task.h"

namespace attsvm {

/// How tokens, queries and selection are drawn.
enum class Law : std::uint8_t {
  random,       ///< Gaussian vectors scaled to unit length
  orthonormal,  ///< the tokens of each sequence are orthonormal
  separable,    ///< random, and the selection is the argmax of a random W0
  planted,      ///< the optimal W and multipliers of the SVM are known
  infeasible,   ///< no W keeps the selection, and the certificate is known
  single_input,
  multi_input,
  joint_training,
  losses,  ///< the small data sets of the prompt-attention experiments
};

enum class QueryPattern : std::uint8_t {
  cross,   ///< a query vector of its own a sequence
  self,    ///< the sequence's first token asks
  prompt,  ///< z = 1
  causal,  ///< every token asks, and sees itself and those before it
};

enum class PlantedNorm : std::uint8_t { frobenius, nuclear };

/// What to draw. Sizes that the law fixes itself must be left at 0.
struct Recipe {
  Law law = Law::random;
  Index n = 0;         ///< sequences; 0: 6
  Index T = 0;         ///< tokens of the longest possible sequence; 0: 8
  Index d = 0;         ///< key and value size; 0: 10
  Index dz = 0;        ///< query size, cross attention only; 0: d
  Index shortest = 0;  ///< lengths are drawn from shortest … T; 0: all are T
  QueryPattern pattern = QueryPattern::cross;
  HeadKind head = HeadKind::linear;  ///< random and orthonormal only
  Index hidden = 0;                  ///< units of a ReLU head; 0: d
  double lambda = 0.5;               ///< of a quadratic head
  Index rank = 0;                    ///< of W0 (separable) or of the planted W; 0: full, or 2 for a planted nuclear W
  PlantedNorm norm = PlantedNorm::frobenius;
  double c = 0;  ///< single_input: third token's score; losses: the first input's score C; joint_training: second
                 ///< coordinate of the last token (1 tight, 1.5 not)
};

struct RecipeKind {
  std::string_view name;
  std::string_view summary;
  Recipe recipe;
};

/// The named recipes of `attsvm generate`.
std::span<const RecipeKind> recipe_kinds();

struct Drawn {
  AttentionTask task;
  std::map<std::string, Array> extras;  ///< what is known beside the task (names start with x_): the planted optimum, …
};

/// Draw number `instance` of the recipe. The same recipe, seed and instance give the same bytes on every machine.
Drawn generate(const Recipe& recipe, std::uint64_t seed, std::uint32_t instance = 0);

}  // namespace attsvm
