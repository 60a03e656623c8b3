#include "theory/row_dimension.h"

#include <Eigen/QR>
#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/random.h"

namespace attsvm::internal {
namespace {

constexpr Index kProjections = 2000;  // the mean of k is then known to about 2 %
constexpr std::uint32_t kConeStream = 0x5c0e0200;
constexpr double kMostEntries = 50'000;  // of a sum's law: beyond it the normal law is as good

/// The multipliers of the chosen columns by least squares.
Eigen::VectorXd fitted(const Eigen::MatrixXd& A, const std::vector<Index>& chosen, const Eigen::VectorXd& g) {
  Eigen::MatrixXd columns(A.rows(), static_cast<Index>(chosen.size()));
  for (Index c = 0; c < columns.cols(); ++c) columns.col(c) = A.col(chosen[static_cast<std::size_t>(c)]);
  return columns.householderQr().solve(g);
}

}  // namespace

Index projection_face(const Eigen::MatrixXd& A, const Eigen::VectorXd& g, const std::function<bool()>& stop) {
  constexpr double kRounding = 1e-10;
  const double scale = kRounding * g.norm() * A.colwise().norm().maxCoeff();
  std::vector<Index> chosen;
  std::vector<double> multiplier;
  Eigen::VectorXd rest = g;
  for (Index round = 0; round < 3 * A.cols(); ++round) {
    if (stop && stop()) break;
    Index best = 0;
    Eigen::VectorXd pull = A.transpose() * rest;
    for (const Index c : chosen) pull(c) = 0;
    if (pull.maxCoeff(&best) <= scale || static_cast<Index>(chosen.size()) == A.rows()) break;
    chosen.push_back(best);
    multiplier.push_back(0);
    Eigen::VectorXd fit = fitted(A, chosen, g);
    while (fit.minCoeff() <= 0 &&
           !(stop && stop())) {  // go towards the fit until a multiplier is 0, and drop its column
      double way = 1;
      std::size_t first = 0;
      for (std::size_t c = 0; c < chosen.size(); ++c) {
        const double aim = fit(static_cast<Index>(c));
        if (aim > 0) continue;
        const double share = multiplier[c] > 0 ? multiplier[c] / (multiplier[c] - aim) : 0;
        if (share <= way) {
          way = share;
          first = c;
        }
      }
      for (std::size_t c = 0; c < chosen.size(); ++c)
        multiplier[c] += way * (fit(static_cast<Index>(c)) - multiplier[c]);
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(first));
      multiplier.erase(multiplier.begin() + static_cast<std::ptrdiff_t>(first));
      if (chosen.empty()) break;
      fit = fitted(A, chosen, g);
    }
    rest = g;
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      multiplier[c] = fit(static_cast<Index>(c));
      rest -= multiplier[c] * A.col(chosen[c]);
    }
  }
  return static_cast<Index>(chosen.size());
}

std::vector<double> dimension_law(Index T, Index d, std::uint64_t seed, Threads& threads,
                                  const std::function<bool()>& stop) {
  if (T == 2) return {0.5, 0.5};
  std::vector<Index> counts(kProjections);
  std::atomic<bool> stopped = false;
  threads.for_each(kProjections, [&](Index k) {
    if (stop && stop()) stopped = true;
    if (stopped) return;
    const Random random(seed, static_cast<std::uint32_t>(k), kConeStream);
    Eigen::MatrixXd X(d, T);
    random.normals({X.data(), static_cast<std::size_t>(X.size())});
    X.colwise().normalize();
    Eigen::VectorXd g(d);
    random.normals({g.data(), static_cast<std::size_t>(d)}, static_cast<std::uint64_t>(X.size()));
    counts[static_cast<std::size_t>(k)] = projection_face(X.rightCols(T - 1).colwise() - X.col(0), g, stop);
  });
  if (stopped || (stop && stop())) return {};
  std::vector<double> law(static_cast<std::size_t>(*std::max_element(counts.begin(), counts.end())) + 1);
  for (const Index count : counts) law[static_cast<std::size_t>(count)] += 1.0 / kProjections;
  return law;
}

double mean_dimension(const std::vector<double>& law) {
  double mean = 0;
  for (std::size_t k = 0; k < law.size(); ++k) mean += static_cast<double>(k) * law[k];
  return mean;
}

double separable_chance(const std::vector<double>& law, Index n, Index D) {
  const Index most = static_cast<Index>(law.size()) - 1;
  if (n * most <= D) return 1;
  if (static_cast<double>(n) * static_cast<double>(most) > kMostEntries) {
    const double mean = mean_dimension(law);
    double square = 0;
    for (std::size_t k = 0; k < law.size(); ++k) square += static_cast<double>(k * k) * law[k];
    const auto count = static_cast<double>(n);
    const double away = (static_cast<double>(D) - count * mean) / std::sqrt(count * (square - mean * mean));
    return std::erfc(-away / std::sqrt(2.0)) / 2;
  }
  // The law of the sum of n, by squaring.
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> c(a.size() + b.size() - 1);
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < b.size(); ++j) c[i + j] += a[i] * b[j];
    }
    return c;
  };
  std::vector<double> sum{1}, power = law;
  for (Index left = n; left > 0; left /= 2) {
    if (left % 2 == 1) sum = product(sum, power);
    if (left > 1) power = product(power, power);
  }
  double outside = 0;
  for (auto k = static_cast<std::size_t>(D) + 1; k < sum.size(); k += 2) outside += 2 * sum[k];
  return std::clamp(1 - outside, 0.0, 1.0);
}

}  // namespace attsvm::internal
