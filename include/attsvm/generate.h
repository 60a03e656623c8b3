#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "attsvm/task.h"

namespace attsvm {

/// How tokens, queries and the selection are drawn.
enum class Law : std::uint8_t {
  random,          ///< Gaussian vectors scaled to unit length
  orthonormal,     ///< the tokens of each sequence are orthonormal
  separable,       ///< as random, and the selection is the argmax of the logits of a random W0
  planted,         ///< the optimal W and multipliers of the SVM are known, and returned in Drawn::extras
  infeasible,      ///< no W meets the rows of the selection; the certificate is returned in Drawn::extras
  next_token,      ///< unit Gaussian embeddings, tokens uniform in the vocabulary, the label uniform in its sequence
  single_input,    ///< a small data set of the prompt-attention experiments, like the next three
  multi_input,     ///< see single_input
  joint_training,  ///< see single_input
  losses,          ///< see single_input
};

std::string_view name_of(Law law);  ///< for messages

/// Which queries a drawn task has.
enum class QueryPattern : std::uint8_t {
  cross,   ///< one query per sequence, with a vector of its own
  self,    ///< one query per sequence: z is the key of its first token
  prompt,  ///< one query per sequence, z = 1
  causal,  ///< one query per token, which sees this token and those before it
};

std::string_view name_of(QueryPattern pattern);  ///< for messages

/// The norm in which a planted W is optimal.
enum class PlantedNorm : std::uint8_t { frobenius, nuclear };

std::string_view name_of(PlantedNorm norm);  ///< for messages

/// What to draw. Sizes that the law itself fixes must be left at 0.
struct Recipe {
  Law law = Law::random;                       ///< how everything is drawn
  Index n = 0;                                 ///< number of sequences; 0: 6
  Index T = 0;                                 ///< tokens in the longest possible sequence; 0: 8
  Index d = 0;                                 ///< size of keys and values; 0: 10
  Index dz = 0;                                ///< size of queries, cross attention only; 0: d
  Index shortest = 0;                          ///< lengths of sequences are drawn from shortest … T; 0: all are T
  QueryPattern pattern = QueryPattern::cross;  ///< which queries it has
  HeadKind head = HeadKind::linear;            ///< other than linear: laws random and orthonormal only
  Index hidden = 0;                            ///< units of a ReLU head; 0: d
  double lambda = 0.5;                         ///< of a quadratic head
  Index rank = 0;  ///< of W0 (separable) or of the planted W; 0: full, or 2 for a planted nuclear W
  PlantedNorm norm = PlantedNorm::frobenius;  ///< in which the planted W is optimal
  Index vocabulary = 0;                       ///< next_token: number of tokens; 0: 6
  double c = 0;  ///< single_input: score of the third token; losses: score C of the first input; joint_training:
                 ///< second coordinate of the last token (1: the third input is a support vector, 1.5: it is not)
};

/// A named recipe of `attsvm generate`.
struct RecipeKind {
  std::string_view name;     ///< as on the command line
  std::string_view summary;  ///< one line
  Recipe recipe;             ///< what it draws
};

/// All named recipes.
std::span<const RecipeKind> recipe_kinds();

/// A drawn task.
struct Drawn {
  AttentionTask task;                   ///< with head, labels and, where the law has one, the selection
  std::map<std::string, Array> extras;  ///< known facts such as the planted optimum; names start with x_
};

/// Draw number `instance` of the recipe. The same recipe, seed and instance give the same bytes on every machine.
/// InputError if the recipe has sizes or options that its law does not allow.
Drawn generate(const Recipe& recipe, std::uint64_t seed, std::uint32_t instance = 0);

/// What a corpus is cut into: bytes, or words (runs of letters and digits) and single other characters.
enum class TokenKind : std::uint8_t { byte, word };

std::string_view name_of(TokenKind kind);  ///< as on the command line

/// How a text becomes a next-token task.
struct Corpus {
  TokenKind tokens = TokenKind::word;  ///< what its tokens are
  Index T = 32;                        ///< tokens per sequence
  Index stride = 0;                    ///< a sequence begins at every multiple of this; 0: T
  Index d = 16;                        ///< size of the embeddings, which are unit Gaussian vectors
  std::uint64_t seed = 0;              ///< for the embeddings
};

/// Windows of the text, each with the token that follows it as its label; those in which that token does not occur are
/// left out. The vocabulary has the tokens in the order in which they first occur. InputError if no window is left.
AttentionTask corpus_task(std::string_view text, const Corpus& corpus);

}  // namespace attsvm
