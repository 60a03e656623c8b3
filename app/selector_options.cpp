#include "selector_options.h"

#include <algorithm>

namespace attsvm::internal {

void add_selector(CLI::App* verb, TrainSettings& settings, std::string& temperature) {
  add_choice(verb, "--selector", settings.selector,
             "How steps take attention from logits: as the softmax, as one token drawn by Gumbel noise with the "
             "softmax's gradient, or as Dirichlet weights (default: soft)");
  verb->add_option(
      "--concentration", settings.concentration,
      "Dirichlet weights: the sum of their parameters, which are proportional to the softmax (default: 10)");
  verb->add_option("--entropy", settings.entropy,
                   "Weight of the attention's mean entropy, which is added to what is minimised (default: 0)");
  verb->add_option("--temperature", temperature,
                   "Divide logits by T in every step, or from T1 down or up to T2 geometrically (default: 1)")
      ->type_name("T|T1:T2");
}

std::array<double, 2> parse_temperature(const std::string& text) {
  const std::string must_be = "one number, or two such as 1:0.1";
  const std::size_t colon = text.find(':');
  if (std::count(text.begin(), text.end(), ':') > 1 || text.find(',') != std::string::npos)
    throw InputError(fmt::format("--temperature {}: must be {}", text, must_be));
  const auto one = [&](const std::string& part) { return parse_list<double>(part, "--temperature", must_be).front(); };
  const double first = one(text.substr(0, colon));
  return {first, colon == std::string::npos ? first : one(text.substr(colon + 1))};
}

}  // namespace attsvm::internal
