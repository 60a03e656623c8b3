#include "base/simd.h"

#include <limits>

#include "support.h"

namespace attsvm {
namespace {

template <class T>
void finds_the_bad_one_everywhere() {
  for (const std::size_t size : {1U, 2U, 7U, 16U, 33U, 64U, 4096U, 4099U}) {
    std::vector<T> numbers(size, T{1.5});
    EXPECT_EQ(first_nonfinite(std::span<const T>(numbers)), size);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                          -std::numeric_limits<T>::infinity()}) {
        auto spoiled = numbers;
        spoiled[place] = bad;
        EXPECT_EQ(first_nonfinite(std::span<const T>(spoiled)), place);
      }
    }
  }
  const std::vector<T> extreme{std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(),
                               std::numeric_limits<T>::denorm_min(), T{-0.0}};
  EXPECT_EQ(first_nonfinite(std::span<const T>(extreme)), extreme.size());
}

TEST(Simd, FirstNonFiniteDouble) { finds_the_bad_one_everywhere<double>(); }
TEST(Simd, FirstNonFiniteFloat) { finds_the_bad_one_everywhere<float>(); }

TEST(Simd, ChosenInstructionsAreTheBestAvailable) {
  const auto available = available_instructions();
  ASSERT_FALSE(available.empty());
  EXPECT_EQ(chosen_instructions(), available.front());
  // The last set needs no special processor; which of the two it is depends on the compiler.
  EXPECT_TRUE(available.back() == "SCALAR" || available.back() == "EMU128") << available.back();
}

}  // namespace
}  // namespace attsvm
