#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace attsvm::bench {

template <class Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};
};

/// Runs the contenders in turn, `rounds` times over, so that a slow moment of the machine affects all of them.
inline void interleave(std::vector<Contender>& contenders, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) contender.seconds.push_back(seconds_of(contender.run));
  }
}

/// A warm-up that is not counted, of at least 50 ms (OpenBLAS's idle threads spin on the other cores for that long when
/// a process begins), then as many runs as fit into `budget` seconds, at least 3 and at most 2,000. If the warm-up
/// alone exceeds the budget, it is the measurement.
inline std::vector<double> sample(double budget, const std::function<void()>& work) {
  constexpr double kWarmUp = 0.05;
  double spent = 0, calls = 0;
  for (; spent < kWarmUp; ++calls) spent += seconds_of(work);
  if (spent / calls > budget) return {spent / calls};
  const double count = std::clamp(budget * calls / spent, 3.0, 2000.0);
  std::vector<double> seconds;
  for (int k = 0; k < static_cast<int>(count); ++k) seconds.push_back(seconds_of(work));
  return seconds;
}

inline std::vector<double> divided(std::vector<double> seconds, double by) {
  for (double& one : seconds) one /= by;
  return seconds;
}

/// The median of the values that are not NaN; NaN if there are none.
inline double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double least(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

}  // namespace attsvm::bench
