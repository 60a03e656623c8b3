#pragma once

#include <string>
#include <string_view>

namespace attsvm::internal {

/// The page as the build made it from web/, in the object that the build generates.
struct BuiltPage {
  std::string_view html;     ///< empty if the build has no page
  std::string_view problem;  ///< why the build has no page
};
BuiltPage built_page();
BuiltPage built_playground();  ///< in the program alone, not in the library

/// Escapes text for HTML, between tags and inside quotes.
std::string escaped_html(std::string_view text);

/// The page with data inside. `json` must be valid; nothing in it can end the element that holds it. `fallback` is HTML
/// for readers whose browser runs no scripts. InputError if this build has no page.
std::string fill_page(std::string_view json, std::string_view fallback);

}  // namespace attsvm::internal
