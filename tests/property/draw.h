// What laws draw. RapidCheck's generators take long to compile, so draw.cpp does it once.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <initializer_list>
#include <random>

#include "support.h"

extern template void rc::detail::checkGTest<void (*)()>(void (*&&)());  // what RC_GTEST_PROP calls

namespace attsvm::test {

std::uint64_t any_seed();
std::mt19937_64 any_engine();
bool any_bool();
Index any_index(Index from, Index end);  ///< from … end − 1; failures shrink towards `from`
std::vector<Index> any_indices(Index from, Index end);
std::vector<std::uint8_t> any_bytes(std::size_t count);
std::string any_text();
double any_number();

template <class T>
T any_of(std::initializer_list<T> list) {
  return list.begin()[any_index(0, static_cast<Index>(list.size()))];
}

}  // namespace attsvm::test
