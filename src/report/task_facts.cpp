#include <nlohmann/json.hpp>

#include "attsvm/report.h"
#include "attsvm/task.h"

namespace attsvm {

std::string task_facts(const AttentionTask& task) {
  Index positive = 0;
  for (Index i = 0; i < task.queries(); ++i) positive += task.label(i) > 0 ? 1 : 0;
  const SeparabilityCondition separability = separability_condition(task);
  using json = nlohmann::ordered_json;
  const json facts{{"attention", name_of(task.kind())},
                   {"causal", task.causal()},
                   {"masked", task.masked()},
                   {"ragged", task.ragged()},
                   {"sequences", task.sequences()},
                   {"queries", task.queries()},
                   {"tokens", task.tokens()},
                   {"longest", task.longest()},
                   {"d", task.key_size()},
                   {"dz", task.query_size()},
                   {"dv", task.value_size()},
                   {"vocabulary", task.next_token() ? json(task.vocabulary_size()) : json(nullptr)},
                   {"keys", task.keys_differ()},
                   {"bias", task.biased()},
                   {"head", name_of(task.head().kind)},
                   {"labels_positive", positive},
                   {"separability",
                    {{"holds", separability.holds},
                     {"needed_key_size", separability.needed_key_size},
                     {"query_rank", separability.query_rank},
                     {"reason", separability.reason}}}};
  return facts.dump();
}

}  // namespace attsvm
