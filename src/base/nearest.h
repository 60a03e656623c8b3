#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attsvm::internal {

/// The known word nearest to one that is not known; empty if none is within half of its letters.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// The end of a message about a word that is not known: "did you mean svm-rank?", or all known words if none is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace attsvm::internal
