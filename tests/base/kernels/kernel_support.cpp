#include "base/kernels/kernel_support.h"

#include <hwy/targets.h>

#include <limits>
#include <random>

namespace attsvm::test {
namespace {

void choose(std::int64_t targets) {  // 0: all that the machine supports
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

void for_every_target(const std::function<void()>& body) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    choose(target);
    body();
  }
  choose(0);
}

template <class T>
Guarded<T>::Guarded(Index count, unsigned seed)
    : items_(static_cast<std::size_t>(count + 2 * kGuard), std::numeric_limits<T>::quiet_NaN()) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  for (Index i = 0; i < count; ++i) (*this)[i] = seed == 0 ? 0 : uniform(engine);
}

template <class T>
Guarded<T>::~Guarded() {
  for (Index i = 0; i < kGuard; ++i) {
    EXPECT_TRUE(std::isnan(items_[static_cast<std::size_t>(i)])) << "written before the first number";
    EXPECT_TRUE(std::isnan(data()[size() + i])) << "written behind the last number";
  }
}

template class Guarded<double>;
template class Guarded<float>;

}  // namespace attsvm::test
