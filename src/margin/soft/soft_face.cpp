#include "margin/soft/soft_face.h"

#include <Eigen/LU>
#include <cmath>

#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand.
constexpr int kRounds = 40, kRefinements = 3;
constexpr Index kMostEquations = 2500;  // that are factorised
constexpr Index kSafelyFactored = 500;  // up to which equations may depend on each other
constexpr double kWrong = 1e-11;        // of the largest multiplier or right-hand side: a sign that is not rounding

}  // namespace

void SoftFace::guess(const SoftPoint& point) {
  active_.assign(static_cast<std::size_t>(rows_.count()), 0);
  full_.assign(rows_.groups().size(), 0);
  for (std::size_t i = 0; i < rows_.groups().size(); ++i) {
    const SoftRows::Group& group = rows_.groups()[i];
    full_[i] = point.y(static_cast<Index>(i)) > point.left(static_cast<Index>(i)) ? 1 : 0;
    Index largest = -1;
    bool any = false;
    for (Index k = group.first; k < group.first + group.count; ++k) {
      active_[static_cast<std::size_t>(k)] = rows_.equal(k) || point.x(k) > point.s(k) ? 1 : 0;
      if (!(rows_.e()(k) > 0)) continue;
      any = any || active_[static_cast<std::size_t>(k)] != 0;
      if (largest < 0 || point.x(k) > point.x(largest)) largest = k;
    }
    if (full_[i] != 0 && !any) active_[static_cast<std::size_t>(largest)] = 1;  // something has to reach the limit
  }
  x_ = point.x;
  y_ = point.y;
}

/// A full group with one active soft row has its multiplier fixed; all other active rows and full groups are unknown.
bool SoftFace::solve() {
  std::vector<Index> free;  // rows
  std::vector<std::pair<Index, Index>>
      full;  // groups with several active rows, and groups with one: (group, row or −1)
  std::vector<Index> column(rows_.groups().size(), -1);
  for (Index k = 0; k < rows_.count(); ++k) {
    if (active_[static_cast<std::size_t>(k)] == 0) x_(k) = 0;
  }
  for (std::size_t i = 0; i < rows_.groups().size(); ++i) {
    const SoftRows::Group& group = rows_.groups()[i];
    Index soft = 0, only = -1;
    for (Index k = group.first; k < group.first + group.count; ++k) {
      if (active_[static_cast<std::size_t>(k)] == 0 || !(rows_.e()(k) > 0)) continue;
      ++soft;
      only = k;
    }
    if (full_[i] == 0) y_(static_cast<Index>(i)) = 0;
    const bool fixed = full_[i] != 0 && soft == 1;
    if (fixed) x_(only) = group.limit / rows_.e()(only);
    if (full_[i] != 0) full.emplace_back(static_cast<Index>(i), fixed ? only : -1);
    for (Index k = group.first; k < group.first + group.count; ++k) {
      if (active_[static_cast<std::size_t>(k)] != 0 && !(fixed && k == only)) free.push_back(k);
    }
  }
  const auto count = static_cast<Index>(free.size());
  Index size = count;
  for (const auto& [group, only] : full) {
    if (only < 0) column[static_cast<std::size_t>(group)] = size++;
  }
  if (size > kMostEquations) return false;
  Eigen::MatrixXd K = Eigen::MatrixXd::Zero(size, size);
  K.topLeftCorner(count, count) = path_.gram_of(free);
  for (std::size_t i = 0; i < rows_.groups().size(); ++i) {
    if (column[i] < 0) continue;
    const SoftRows::Group& group = rows_.groups()[i];
    for (Index f = 0; f < count; ++f) {
      const Index k = free[static_cast<std::size_t>(f)];
      if (k < group.first || k >= group.first + group.count) continue;
      K(f, column[i]) = K(column[i], f) = rows_.e()(k);
    }
  }
  Eigen::FullPivLU<Eigen::MatrixXd> safe;
  Eigen::PartialPivLU<Eigen::MatrixXd> quick;
  if (size > 0 && size <= kSafelyFactored) safe.compute(K);
  if (size > kSafelyFactored) quick.compute(K);
  for (int round = 0; round < kRefinements; ++round) {
    const Eigen::VectorXd values = rows_.products(x_);
    Eigen::VectorXd rest(size);
    std::size_t i = 0;
    for (Index f = 0; f < count; ++f) {
      const Index k = free[static_cast<std::size_t>(f)];
      while (k >= rows_.groups()[i].first + rows_.groups()[i].count) ++i;
      rest(f) = rows_.b()(k) - values(k) - rows_.e()(k) * y_(static_cast<Index>(i));
    }
    for (const auto& [at, only] : full) {
      const SoftRows::Group& group = rows_.groups()[static_cast<std::size_t>(at)];
      if (only >= 0) {
        y_(at) = (rows_.b()(only) - values(only)) / rows_.e()(only);
        continue;
      }
      long double sum = group.limit;
      for (Index k = group.first; k < group.first + group.count; ++k)
        sum -= static_cast<long double>(rows_.e()(k)) * x_(k);
      rest(column[static_cast<std::size_t>(at)]) = static_cast<double>(sum);
    }
    if (size == 0) continue;
    const Eigen::VectorXd step = size <= kSafelyFactored ? Eigen::VectorXd(safe.solve(rest)) : quick.solve(rest);
    if (!step.allFinite()) return false;
    for (Index f = 0; f < count; ++f) x_(free[static_cast<std::size_t>(f)]) += step(f);
    for (const auto& [at, only] : full) {
      if (only < 0) y_(at) += step(column[static_cast<std::size_t>(at)]);
    }
  }
  const Eigen::VectorXd values = rows_.products(x_);
  for (const auto& [at, only] : full) {
    if (only >= 0) y_(at) = (rows_.b()(only) - values(only)) / rows_.e()(only);
  }
  return true;
}

/// Corrects the guess where signs are wrong. False: they are all right.
bool SoftFace::correct() {
  const Eigen::VectorXd values = rows_.products(x_);
  const double multiplier = kWrong * x_.cwiseAbs().maxCoeff(), room = kWrong * rows_.b().cwiseAbs().maxCoeff();
  bool changed = false;
  for (std::size_t i = 0; i < rows_.groups().size(); ++i) {
    const SoftRows::Group& group = rows_.groups()[i];
    double used = 0;
    Index lowest = -1;  // the soft row that asks for the most slack
    double most = 0;
    for (Index k = group.first; k < group.first + group.count; ++k) {
      char& active = active_[static_cast<std::size_t>(k)];
      const double slack = values(k) + rows_.e()(k) * y_(static_cast<Index>(i)) - rows_.b()(k);
      used += rows_.e()(k) * x_(k);
      if (rows_.e()(k) > 0 && (lowest < 0 || (rows_.b()(k) - values(k)) / rows_.e()(k) > most)) {
        lowest = k;
        most = (rows_.b()(k) - values(k)) / rows_.e()(k);
      }
      if (rows_.equal(k)) continue;
      if (active != 0 && x_(k) < -multiplier) {
        active = 0;
        changed = true;
      } else if (active == 0 && slack < -room) {
        active = 1;
        changed = true;
      }
    }
    if (lowest < 0) continue;
    if (full_[i] == 0 && used > group.limit + multiplier) {
      full_[i] = 1;
      active_[static_cast<std::size_t>(lowest)] = 1;
      changed = true;
    } else if (full_[i] != 0 && y_(static_cast<Index>(i)) < -room) {
      full_[i] = 0;
      changed = true;
    }
    if (full_[i] != 0) {
      bool any = false;
      for (Index k = group.first; k < group.first + group.count; ++k)
        any = any || (rows_.e()(k) > 0 && active_[static_cast<std::size_t>(k)] != 0);
      if (!any) active_[static_cast<std::size_t>(lowest)] = 1;
    }
  }
  return changed;
}

void SoftFace::polish(SoftPoint& point) {
  guess(point);
  for (int round = 0; round < kRounds; ++round) {
    if (!solve()) return;
    SoftPoint sharp = point;
    sharp.x = x_;
    for (Index k = 0; k < rows_.count(); ++k) {
      if (!rows_.equal(k)) sharp.x(k) = std::max(0.0, x_(k));
    }
    for (std::size_t i = 0; i < rows_.groups().size(); ++i) {
      const SoftRows::Group& group = rows_.groups()[i];
      auto part = sharp.x.segment(group.first, group.count);
      const double used = rows_.e().segment(group.first, group.count).dot(part);
      if (used > group.limit) {
        for (Index k = group.first; k < group.first + group.count; ++k) {
          if (rows_.e()(k) > 0) sharp.x(k) *= group.limit / used;
        }
      }
    }
    measure(rows_, rows_.products(sharp.x), sharp);
    sharp.y = y_.cwiseMax(0.0);
    const bool wrong = correct();
    if (!wrong || sharp.gap() < point.gap()) point = sharp;
    if (!wrong) return;
  }
}

}  // namespace attsvm::internal
