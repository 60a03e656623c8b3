#include "property/draw.h"

template void rc::detail::checkGTest<void (*)()>(void (*&&)());

namespace attsvm::test {

std::uint64_t any_seed() { return *rc::gen::arbitrary<std::uint64_t>(); }
std::mt19937_64 any_engine() { return std::mt19937_64(any_seed()); }
bool any_bool() { return *rc::gen::arbitrary<bool>(); }
Index any_index(Index from, Index end) { return *rc::gen::inRange<Index>(from, end); }
std::vector<Index> any_indices(Index from, Index end) {
  return *rc::gen::container<std::vector<Index>>(rc::gen::inRange<Index>(from, end));
}
std::vector<std::uint8_t> any_bytes(std::size_t count) {
  return *rc::gen::container<std::vector<std::uint8_t>>(count, rc::gen::arbitrary<std::uint8_t>());
}
std::string any_text() { return *rc::gen::arbitrary<std::string>(); }
double any_number() { return *rc::gen::arbitrary<double>(); }

}  // namespace attsvm::test
