#include "train/lane_runs.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "train/losses.h"
#include "train/products.h"
#include "train/token_scores.h"
#include "train/update.h"

namespace attsvm::internal {
namespace {

constexpr Index kMostQueries = 64;  // beyond them lanes are slower
constexpr double kLargestSize = 1e20,
                 kSmallestSize = 1e-20;  // range of sizes whose products and squares do not overflow
constexpr double kBlurred = 1e-5;        // score gaps below this share of the largest score lose five of sixteen digits

/// T of the lanes: the most tokens that a query sees.
Index most_seen(const AttentionTask& task) {
  Index most = 0;
  for (Index i = 0; i < task.queries(); ++i) most = std::max(most, task.visible(i));
  return most;
}

bool fits(const TrainSettings& settings, const AttentionTask& task, const Head& head, Index most_numbers) {
  const StepRule rule = rule_of(settings);
  const bool known = along_gradient(rule) || lanes_can_step(rule);
  if (rule.norm == Norm::spectral() && std::max(task.key_size(), task.query_size()) > kMostPolarColumns) return false;
  const bool whole = settings.batch == 0 || settings.batch >= task.queries();
  return head.kind == HeadKind::linear && !task.biased() && settings.heads == 1 && !settings.joint && known &&
         settings.newton_schulz == 0 && whole && settings.dropout == 0 && settings.selector == Selector::soft &&
         settings.entropy == 0 && settings.temperature == TrainSettings{}.temperature && settings.ridge == 0 &&
         settings.label_smoothing == 0 && settings.step * rule.weight_decay <= 1 &&
         settings.arithmetic == Arithmetic::exact && task.queries() <= kMostQueries &&
         task.queries() * most_seen(task) * task.key_size() <= most_numbers;
}

/// Writes the scores of query i, label included; tied scores get equal bits. False if a gap is too small (kBlurred) or
/// ties are not transitive.
bool fill_scores(const AttentionTask& task, const TokenScores& scores, Index i, double* gamma) {
  const Index first = task.seen_row(i), T = task.visible(i);
  double largest = 0;
  for (Index t = 0; t < T; ++t) {
    gamma[t] = task.label(i) * scores.value(first + t);
    largest = std::max(largest, std::abs(gamma[t]));
    for (Index s = 0; s < t; ++s) {
      if (scores.gap(first + s, first + t) != 0) continue;
      gamma[t] = gamma[s];
      break;
    }
  }
  for (Index t = 0; t < T; ++t) {
    for (Index s = 0; s < t; ++s) {
      const double gap = std::abs(gamma[t] - gamma[s]);
      if (scores.gap(first + s, first + t) == 0 ? gap != 0 : gap <= kBlurred * largest) return false;
    }
  }
  return true;
}

bool tokens_differ(const AttentionTask& task, Index i) {
  const ConstRows X = task.seen_keys(i);
  for (Index t = 0; t < X.rows(); ++t) {
    for (Index s = 0; s < t; ++s) {
      if (X(t, 0) == X(s, 0) && X.row(t) == X.row(s)) return false;
    }
  }
  return true;
}

bool in_range(double size) { return size >= kSmallestSize && size <= kLargestSize; }

/// Whether the run cannot leave the range of doubles in any of its steps.
bool bounded(const AttentionTask& task, const TrainSettings& settings, const Parameters& start,
             const std::vector<double>& gamma) {
  double score = 0, key = 0, query = 0, point = 0;
  for (const double value : gamma) score = std::max(score, std::abs(value));
  for (Index i = 0; i < task.queries(); ++i) {
    key = std::max(key, task.seen_keys(i).rowwise().norm().maxCoeff());
    query = std::max(query, task.query(i).norm());
  }
  for (const RowMatrix& array : start.arrays) point = std::max(point, array.cwiseAbs().maxCoeff());
  const StepRule rule = rule_of(settings);
  // An entry of Adam's step is at most 1/√((1−b2)(1−b1²/b2)) by the Cauchy-Schwarz inequality; others at most 1.
  const double b1 = rule.betas[0], b2 = rule.betas[1];
  const double most = rule.kind == StepKind::adam ? 1 / std::sqrt((1 - b2) * (1 - b1 * b1 / b2)) : 1;
  const double way = settings.step * static_cast<double>(settings.steps) * most;
  if (!in_range(score) || !in_range(key) || !in_range(query) || point > kLargestSize || way > kLargestSize)
    return false;
  if (rule.kind == StepKind::steepest || rule.kind == StepKind::adam) return true;
  if (settings.loss == Loss::exponential && score > 100) return false;
  // ‖∂L/∂W‖ is below this; K and Q, whose gradients depend on each other, grow at most like e^{way·slope}.
  const double slope = score * key * query * (settings.loss == Loss::exponential ? std::exp(score) : 1);
  return start.param != Parametrization::KQ || way * slope < 300;
}

}  // namespace

bool along_gradient(const StepRule& rule) {
  return !rule.averages() && rule.weight_decay == 0 &&
         (rule.kind == StepKind::scaled || (rule.kind == StepKind::steepest && rule.norm.is_frobenius()));
}

std::optional<LaneInput> lane_input(const AttentionTask& task, const TrainSettings& settings, const Head& head,
                                    const Parameters& start, Index most_numbers) {
  if (!fits(settings, task, head, most_numbers)) return std::nullopt;
  Threads alone(1);
  TokenScores scores;
  scores.compute(task, head.v, alone);
  const Index T = most_seen(task);
  LaneInput input{.shape = {task.queries(), T, task.key_size(), task.query_size(),
                            start.param == Parametrization::KQ ? start.K().cols() : 0},
                  .gamma = {}};
  input.gamma.resize(static_cast<std::size_t>(task.queries() * T));
  for (Index i = 0; i < task.queries(); ++i) {
    if (!tokens_differ(task, i)) return std::nullopt;
    if (!fill_scores(task, scores, i, input.gamma.data() + i * T)) return std::nullopt;
  }
  if (!bounded(task, settings, start, input.gamma)) return std::nullopt;
  return input;
}

double* LaneRuns::room(Index size) {
  const auto doubles = static_cast<std::size_t>(size * group_.lanes);
  return arrays_.emplace_back((doubles + 7) / 8, CacheLine{}).data()->numbers;
}

LaneRuns::LaneRuns(const LaneShape& shape, Index lanes, const TrainSettings& settings)
    : shape_(shape),
      rule_(rule_of(settings)),
      first_(static_cast<std::size_t>(lanes)),
      basis_(static_cast<std::size_t>(lanes)),
      Z_(static_cast<std::size_t>(lanes)) {
  const bool whole = !along_gradient(rule_);
  // Steps along U Vᵀ stay in the span of the queries, where W has fewer columns if these are few.
  narrow_ = whole && shape.r == 0 && shape.n < shape.dz && rule_.weight_decay == 0 && rule_.norm == Norm::spectral();
  const Index n = shape.n, T = shape.T, d = shape.d;
  const Index r = narrow_ ? n : whole && shape.r == 0 ? shape.dz : shape.r;
  const Index width = r > 0 ? r : d;
  group_ = {.lanes = lanes,
            .n = n,
            .T = T,
            .d = d,
            .r = r,
            .dz = shape.dz,
            .whole = whole,
            .loss = settings.loss,
            .normalized = rule_.kind == StepKind::steepest,
            .epsilon = rule_.epsilon};
  group_.X = room(n * T * d);
  group_.gamma = room(n * T);
  group_.gram = room(n * n);
  group_.visible = room(n);
  group_.reach = room(n * width);
  group_.added = whole ? nullptr : room(n * width);
  group_.change = whole ? nullptr : room(n * width);
  group_.f = room(n);
  group_.g = room(n * d);
  group_.c = room(n);
  group_.top = room(1);
  group_.square = room(2);
  group_.work = room(2 * T + n);
  if (r == 0) return;
  group_.K = room(d * r);
  group_.change_K = room(d * r);
  group_.u = room(n * d);
  group_.m = room(n * r);
  if (!whole) return;
  add_whole(d, r, group_.K, group_.change_K);
  if (shape.r == 0) return;
  group_.Q = room(shape.dz * r);
  group_.change_Q = room(shape.dz * r);
  group_.Z = room(n * shape.dz);
  add_whole(shape.dz, r, group_.Q, group_.change_Q);
}

void LaneRuns::add_whole(Index rows, Index cols, double* theta, const double* descent) {
  LaneArray array{.rows = rows, .cols = cols, .theta = theta, .descent = descent};
  const bool adam = rule_.kind == StepKind::adam;
  for (double** memory : {&array.mean, &array.block, &array.mixed, &array.mixed_block}) {
    const bool scratch = memory == &array.mixed || memory == &array.mixed_block;
    if (rule_.averages() || (adam && !scratch)) *memory = room(rows * cols);
  }
  if (adam) array.square = room(rows * cols);
  array.peak = room(1);
  if (rule_.norm == Norm::spectral()) array.columns = room((rows + cols) * std::min(rows, cols));
  whole_.push_back(array);
}

void LaneRuns::advance(double size, Index step) {
  if (!group_.whole) return lane_move(group_, size);
  const LaneStep taken{rule_, size, step, group_.top, static_cast<double>(shape_.n)};
  for (LaneArray& array : whole_) lane_step(taken, group_.lanes, array);
}

void LaneRuns::put(Index lane, const AttentionTask& task, const LaneInput& input, const Parameters& start, bool keys) {
  const Index n = shape_.n, T = shape_.T, d = shape_.d, dz = shape_.dz, r = shape_.r;
  const auto set = [&](double* array, Index k, double value) { at(array, k, lane) = value; };
  RowMatrix& Z = Z_[static_cast<std::size_t>(lane)];
  Z.resize(n, dz);
  for (Index i = 0; i < n; ++i) {
    Z.row(i) = task.query(i).transpose();
    set(group_.visible, i, static_cast<double>(task.visible(i)));
    group_.ragged = group_.ragged || task.visible(i) < T;
    const ConstRows X = task.seen_keys(i);
    for (Index t = 0; keys && t < X.rows(); ++t) {
      const double* row = X.row(t).data();
      double* to = group_.X + (i * T + t) * d * group_.lanes + lane;
      for (Index j = 0; j < d; ++j) to[j * group_.lanes] = row[j];
    }
    for (Index t = 0; t < T; ++t) set(group_.gamma, i * T + t, input.gamma[static_cast<std::size_t>(i * T + t)]);
    for (Index k = 0; k <= i; ++k) {
      double product = 0;
      dots(Z.row(i).data(), 1, dz, Z.row(k).data(), &product);
      set(group_.gram, i * n + k, product);
      set(group_.gram, k * n + i, product);
    }
  }
  const auto set_all = [&](double* array, const RowMatrix& from) {
    for (Index k = 0; k < from.size(); ++k) set(array, k, from.data()[k]);
  };
  if (narrow_) {
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(Z.transpose());
    RowMatrix& basis = basis_[static_cast<std::size_t>(lane)];
    basis = qr.householderQ() * Eigen::MatrixXd::Identity(dz, n);
    first_[static_cast<std::size_t>(lane)] = start.W();
    set_all(group_.reach, Z * basis);
    set_all(group_.K, start.W() * basis);
    return;
  }
  if (group_.whole) {
    set_all(r > 0 ? group_.Z : group_.reach, Z);
    set_all(group_.K, start.arrays[0]);
    if (r > 0) set_all(group_.Q, start.Q());
    return;
  }
  const RowMatrix& first = start.arrays[r > 0 ? 1 : 0];
  first_[static_cast<std::size_t>(lane)] = first;
  set_all(group_.reach, r > 0 ? RowMatrix(Z * first) : RowMatrix(Z * first.transpose()));
  if (r > 0) set_all(group_.K, start.K());
}

bool LaneRuns::rests(Index lane) const {
  if (at(group_.square, 0, lane) > 0 || (shape_.r > 0 && at(group_.square, 1, lane) > 0)) return false;
  for (const LaneArray& array : whole_) {
    for (const double* memory : {array.mean, array.square}) {
      for (Index k = 0; k < array.rows * array.cols && memory != nullptr; ++k) {
        if (memory[k * group_.lanes + lane] != 0) return false;
      }
    }
  }
  return rule_.weight_decay == 0;
}

void LaneRuns::read_point(Index lane, Parameters& point) const {
  const Index n = shape_.n, d = shape_.d, r = shape_.r;
  if (narrow_) {
    const RowMatrix &basis = basis_[static_cast<std::size_t>(lane)], &first = first_[static_cast<std::size_t>(lane)];
    RowMatrix inside(d, n);
    for (Index k = 0; k < inside.size(); ++k) inside.data()[k] = at(group_.K, k, lane);
    point.arrays[0] = first + (inside - first * basis) * basis.transpose();
    return;
  }
  for (std::size_t a = 0; a < whole_.size(); ++a) {
    for (Index k = 0; k < point.arrays[a].size(); ++k) point.arrays[a].data()[k] = at(whole_[a].theta, k, lane);
  }
  if (group_.whole) return point.form_product();
  const RowMatrix& Z = Z_[static_cast<std::size_t>(lane)];
  RowMatrix added(n, r > 0 ? r : d);
  for (Index k = 0; k < added.size(); ++k) added.data()[k] = at(group_.added, k, lane);
  const RowMatrix& first = first_[static_cast<std::size_t>(lane)];
  if (r == 0) {
    point.arrays[0] = first + added.transpose() * Z;
    return;
  }
  for (Index k = 0; k < d * r; ++k) point.arrays[0].data()[k] = at(group_.K, k, lane);
  point.arrays[1] = first + Z.transpose() * added;
  point.form_product();
}

double LaneRuns::loss(Index lane) const {
  double sum = 0;
  for (Index i = 0; i < shape_.n; ++i) sum += loss_terms(group_.loss, at(group_.f, i, lane)).value;
  return sum / static_cast<double>(shape_.n);
}

Record LaneRuns::record(Index lane, Index step, Parameters& point) const {
  const Index n = shape_.n, d = shape_.d;
  const auto count = static_cast<double>(n);
  read_point(lane, point);
  Record here{.step = step, .loss = loss(lane), .norm = safe_norm(point.W()), .W = point.W()};
  double top = kLogZero, sum = 0, square = 0;
  for (Index i = 0; i < n; ++i) top = std::max(top, log_loss_value(group_.loss, at(group_.f, i, lane)));
  for (Index i = 0; i < n; ++i) sum += std::exp(log_loss_value(group_.loss, at(group_.f, i, lane)) - top);
  here.log_loss = group_.loss == Loss::linear ? std::log(here.loss) : top + std::log(sum / count);
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < n; ++k) {
      double product = 0;
      for (Index j = 0; j < d; ++j) product += at(group_.g, i * d + j, lane) * at(group_.g, k * d + j, lane);
      square += at(group_.c, i, lane) * at(group_.c, k, lane) * at(group_.gram, i * n + k, lane) * product;
    }
  }
  here.log_gradient = square > 0 ? at(group_.top, 0, lane) - std::log(count) + std::log(square) / 2 : kLogZero;
  return here;
}

}  // namespace attsvm::internal
