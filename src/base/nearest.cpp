#include "base/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace attsvm::internal {
namespace {

/// Edit distance: how many letters to insert, delete, replace or swap with the next one to make two words equal.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = word.substr(std::min(word.size(), word.find_first_not_of('-'))).size() / 2;
  for (const std::string& one : known) {
    const std::size_t far = distance(word, one);
    if (far > least || (far == least && !best.empty())) continue;
    least = far;
    best = one;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? fmt::format("must be one of {}", fmt::join(known, ", "))
                       : fmt::format("did you mean {}?", meant);
}

}  // namespace attsvm::internal
