#pragma once

#include <map>
#include <string>
#include <vector>

#include "attsvm/generate.h"
#include "base/random.h"

namespace attsvm::internal {

// Shared by the generators. They use plain loops in a fixed order because a seed must give the same bytes everywhere,
// and the order of sums in Eigen's products depends on the vector width they were compiled for.

/// Random streams of one draw. These numbers must never change, or seeds would draw other tasks.
enum Stream : std::uint32_t {
  kTokens = 0,
  kQueries = 1,
  kHead = 2,
  kLabels = 3,
  kLengths = 4,
  kHidden = 5,
  kTeacherLeft = 6,
  kTeacherRight = 7,
  kSelect = 8,
  kShape = 9,
  kWeights = 10,
  kSpectrum = 11,
  kCounts = 12,
  kIds = 13,
};

struct Draft {
  Recipe recipe;  // with all sizes filled in
  std::uint64_t seed;
  std::uint32_t instance;
  std::vector<Index> offsets{};  // n+1
  RowMatrix tokens{};            // (N,d)
  RowMatrix queries{};           // (n,dz), cross only
  std::vector<Index> select{};   // empty: no selection
  std::map<std::string, Array> extras{};

  Random random(Stream stream) const { return {seed, instance, stream}; }
  RowMatrix normals(Stream stream, Index rows, Index cols) const;
  Index length(Index s) const {
    return offsets[static_cast<std::size_t>(s) + 1] - offsets[static_cast<std::size_t>(s)];
  }
  double* token(Index s, Index t) { return tokens.row(offsets[static_cast<std::size_t>(s)] + t).data(); }
  const double* query(Index s) const;  // z of the query of sequence s; cross and prompt attention only
  Index query_size() const { return recipe.pattern == QueryPattern::cross ? recipe.dz : 1; }
  void draw_select();  // a random token for every sequence
};

double plain_dot(const double* a, const double* b, Index size);
void add(double* a, double factor, const double* b, Index size);  // a += factor b
void scale_to_unit(double* a, Index size);

/// Makes the rows orthonormal: Gram–Schmidt, twice.
void orthonormalize(RowMatrix& rows);

/// Fills tokens, queries and selection so that the optimum is known.
void draw_planted(Draft& draft);
/// The task of Law::next_token.
AttentionTask draw_next_token(const Draft& draft);
/// Fills tokens, queries and selection so that a certificate of infeasibility is known.
void draw_infeasible(Draft& draft);

}  // namespace attsvm::internal
