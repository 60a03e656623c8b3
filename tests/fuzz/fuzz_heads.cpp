#include "attsvm/audit.h"
#include "audit/head_fields.h"
#include "npz_mutator.h"

namespace {

using namespace attsvm;

/// Looks at everything a set of heads says, as an audit does.
void visit(const HeadSet& heads) {
  double sum = 0;
  for (Index h = 0; h < heads.heads(); ++h) {
    sum += heads.keys(h).sum() + heads.query_vectors(h).sum() + heads.difference(h);
    sum += static_cast<double>(heads.layer(h) ^ heads.number(h));
  }
  for (Index i = 0; i < heads.queries(); ++i) {
    const Index length = heads.length(heads.sequence(i));
    if (heads.self()) fuzz::require(heads.position(i) < length, "a query beyond its sequence");
    for (Index t = 0; t < length; ++t) sum += heads.sees(heads.heads() - 1, i, t) ? 1 : 0;
    sum += static_cast<double>(heads.query_text(i).size());
  }
  for (Index t = 0; t < heads.tokens(); ++t) sum += static_cast<double>(heads.text(t).size()) + (heads.sink(t) ? 1 : 0);
  [[maybe_unused]] volatile double kept = sum;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_npz(data, size, max_size, seed, head_fields());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Threads threads(1);
  const fuzz::MemoryFile input(data, size);
  fuzz::refuse_or([&] {
    const HeadSet heads = load_heads(input.path(), threads);
    visit(heads);
    const bool small = heads.heads() <= 2 && heads.queries() <= 16 && heads.tokens() <= 64 && heads.size() <= 4;
    if (!small) return;
    const AuditSettings settings{.queries = 8, .nulls = 1, .tolerance = 1e-4, .time_limit = 0.2};
    const Audit result = audit(heads, settings, threads);
    audit_arrays(result);
    audit_page(heads, result, settings, "fuzz", "");
  });
  return 0;
}
