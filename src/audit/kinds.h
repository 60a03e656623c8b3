#pragma once

#include "audit/head_view.h"

namespace attsvm::internal {

/// The shares of the kinds among the head's choices, largest first; kinds that attention of this form cannot have are
/// left out.
std::vector<KindShare> kinds_of(const HeadView& view);

/// What a token is to a query: sink, self, previous, next, same word, induction or other, the first that fits.
std::string_view kind_of_token(const HeadSet& heads, Index query, Index token);

/// The kind of choice, or of token, with this name. InputError if there is none.
ChoiceKind choice_kind(std::string_view name);
std::string_view token_kind(std::string_view name);

}  // namespace attsvm::internal
