#include "base/storage.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace attsvm {
namespace {

TEST(Storage, MuchMemoryIsNotKept) {
  constexpr Index kMuch = Index{3} << 20;  // 24 MB
  Storage<double> much;
  much.reserve(kMuch);
  EXPECT_EQ(much.capacity(), kMuch);
  Storage<double>().swap(much);
  much.reserve(kMuch - 1000);
  EXPECT_EQ(much.capacity(), kMuch - 1000);
}

#ifndef ATTSVM_SEES_FREED_MEMORY  // with AddressSanitizer nothing is kept
TEST(Storage, FreedMemoryServesTheNextOfItsSize) {
  std::thread([] {  // a thread that has freed nothing yet
    Storage<double> first;
    first.reserve(1000);
    const double* const place = first.data();
    Storage<double>().swap(first);
    Storage<float> small, next;
    small.reserve(100);
    EXPECT_NE(static_cast<const void*>(small.data()), place);  // the block is far too large to be reused for this
    next.reserve(1500);
    EXPECT_EQ(static_cast<const void*>(next.data()), place);
    EXPECT_EQ(next.capacity(), 2000);
  })
      .join();
}

TEST(Storage, TheOldestGoesWhenThereIsTooMuch) {
  constexpr Index kThird = RecycledMemory::kKept / sizeof(double) / 3;
  std::array<Storage<double>, 4> all;
  for (Index k = 0; k < 4; ++k) all[static_cast<std::size_t>(k)].reserve(kThird + k);
  for (Storage<double>& one : all) Storage<double>().swap(one);
  Storage<double> again;
  again.reserve(kThird - 1);  // the third block is the oldest that is still kept
  EXPECT_EQ(again.capacity(), kThird + 2);
}

TEST(Storage, ThreadsKeepTheirOwn) {
  Storage<double> here;
  here.reserve(5000);
  std::thread([&] {
    Storage<double>().swap(here);  // the other thread keeps it now, and frees it at its end
    Storage<double> there;
    there.reserve(4000);
    EXPECT_EQ(there.capacity(), 5000);
  }).join();
  here.reserve(4000);
  EXPECT_EQ(here.capacity(), 4000);
}

#endif

}  // namespace
}  // namespace attsvm
