#include "report/page.h"

#include <array>
#include <stdexcept>

#include "base/refuse.h"

namespace attsvm::internal {
namespace {

/// JSON with every '<' escaped, so that no text in it closes the script element or opens a comment.
std::string inert(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string fill_page(std::string_view json, std::string_view fallback) {
  constexpr std::string_view kFallback = "<!--attsvm:fallback-->", kData = "<!--attsvm:data-->";
  const BuiltPage page = built_page();
  if (page.html.empty()) refuse("{}", page.problem);
  const std::size_t first = page.html.find(kFallback), second = page.html.find(kData, first);
  if (second == std::string_view::npos) throw std::logic_error("the page has no place for its data");
  std::string out(page.html.substr(0, first));
  out += fallback;
  out += page.html.substr(first + kFallback.size(), second - first - kFallback.size());
  out += inert(json);
  out += page.html.substr(second + kData.size());
  return out;
}

}  // namespace attsvm::internal
