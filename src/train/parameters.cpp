#include "train/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/refuse.h"
#include "train/gradient.h"
#include "train/many_heads.h"
#include "train/products.h"
#include "train/streams.h"

namespace attsvm::internal {
namespace {

RowMatrix drawn(const TrainSettings& settings, TrainStream stream, Index rows, Index cols) {
  RowMatrix matrix(settings.heads * rows, cols);
  const Random random(settings.seed, settings.instance, stream);
  const double half_width = 1 / std::sqrt(static_cast<double>(rows));
  for (Index k = 0; k < matrix.size(); ++k) {
    matrix.data()[k] = half_width * (2 * random.uniform(static_cast<std::uint64_t>(k)) - 1);
  }
  return matrix;
}

/// The given array if it is not empty, else a random or zero one.
RowMatrix first_array(const RowMatrix& given, const char* name, bool random, const TrainSettings& settings,
                      TrainStream stream, Index rows, Index cols) {
  const Index all = settings.heads * rows;
  if (given.size() == 0) return random ? drawn(settings, stream, rows, cols) : RowMatrix::Zero(all, cols);
  if (given.rows() != all || given.cols() != cols) {
    if (settings.heads > 1)
      refuse("{} has {} rows of {} numbers; must have {} per head, {} in all, of {}", name, given.rows(), given.cols(),
             rows, all, cols);
    refuse("{} has shape ({},{}); must be ({},{})", name, given.rows(), given.cols(), rows, cols);
  }
  if (!given.allFinite()) refuse("{} holds a number that is not finite", name);
  return given;
}

/// Adds factor·array to `to`, in a common scale; plain arithmetic has the scale 1.
void add_scaled(ScaledMatrix& to, double factor, const Eigen::Ref<const RowMatrix>& array, Arithmetic arithmetic) {
  if (factor == 0) return;
  if (arithmetic == Arithmetic::plain) {
    to.direction += factor * array;
    return;
  }
  const double log_factor = std::log(factor), scale = std::max(to.log_scale, log_factor);
  to.direction = to.direction * std::exp(to.log_scale - scale) + array * std::exp(log_factor - scale);
  to.log_scale = scale;
}

/// K and Q of one head.
struct Factors {
  const Eigen::Ref<const RowMatrix> K, Q;
};

void factor_gradients(const ScaledMatrix& W, const Factors& at, double ridge, Arithmetic arithmetic, ScaledMatrix& K,
                      ScaledMatrix& Q) {
  const RowMatrix& G = W.direction;
  const Index d = at.K.rows(), dz = at.Q.rows(), width = at.K.cols();
  K.direction.resize(d, width);
  Q.direction.resize(dz, width);
  times(G.data(), at.Q.data(), d, width, dz, K.direction.data());
  transposed_times(G.data(), at.K.data(), dz, width, d, 0, dz, Q.direction.data());
  K.log_scale = Q.log_scale = W.log_scale;
  add_scaled(K, 2 * ridge, at.K, arithmetic);
  add_scaled(Q, 2 * ridge, at.Q, arithmetic);
}

}  // namespace

void Parameters::form_product() {
  if (!formed()) return;
  if (param != Parametrization::KQ) {
    product = all(0);
    return;
  }
  const ConstRows first = part(0, 0), other = part(1, 0);
  const Index d = first.rows(), dz = other.rows();
  product.resize(heads * d, dz);
  for (Index h = 0; h < heads; ++h) {
    times_transposed(part(0, h).data(), part(1, h).data(), d, dz, first.cols(), product.data() + h * d * dz);
  }
}

ConstRows Parameters::part(std::size_t kind, Index head) const {
  const auto at = static_cast<std::size_t>(head), size = static_cast<std::size_t>(heads);
  if (!shared)
    return ConstRows(arrays[kind * size + at].data(), arrays[kind * size].rows(), arrays[kind * size].cols());
  const RowMatrix& array = arrays[kind];
  const Index rows = array.rows() / heads;
  return ConstRows(array.data() + head * rows * array.cols(), rows, array.cols());
}

RowMatrix Parameters::all(std::size_t kind) const {
  const ConstRows first = part(kind, 0);
  RowMatrix stacked(heads * first.rows(), first.cols());
  for (Index h = 0; h < heads; ++h) stacked.middleRows(h * first.rows(), first.rows()) = part(kind, h);
  return stacked;
}

Head starting_head(const AttentionTask& task, const TrainSettings& settings, const Start& start) {
  Head head = task.head();
  if (task.next_token()) {
    if (start.v.size() > 0) refuse("v0 has no meaning: a next-token task has no head");
    return head;
  }
  if (settings.heads > 1) {
    head = {.kind = HeadKind::linear, .v = start.v.size() > 0 ? start.v : starting_values(task, settings)};
    const Index dv = task.value_size();
    if (head.v.size() != settings.heads * dv)
      refuse("v0 has {} numbers; must have {} per head, {} in all", head.v.size(), dv, settings.heads * dv);
    if (!head.v.allFinite()) refuse("v0 holds a number that is not finite");
    return head;
  }
  if (start.v.size() == 0) {
    if (head.kind == HeadKind::none) refuse("head is missing; training needs one (or a start v0)");
    return head;
  }
  const Index size = head.kind == HeadKind::hidden ? head.B.cols() : task.value_size();
  if (start.v.size() != size) refuse("v0 has shape ({}); must be ({})", start.v.size(), size);
  if (!start.v.allFinite()) refuse("v0 holds a number that is not finite");
  if (head.kind == HeadKind::none) head.kind = HeadKind::linear;
  head.v = start.v;
  return head;
}

Parameters starting_point(const AttentionTask& task, const TrainSettings& settings, const Start& start,
                          const Head& head) {
  const Index d = task.key_size(), dz = task.query_size();
  Parameters point{
      .param = settings.param, .joint = settings.joint, .heads = settings.heads, .shared = settings.shared_norm};
  if (settings.param == Parametrization::KQ) {
    Index width = settings.width > 0 ? settings.width : std::min(d, dz);
    if (start.K.size() > 0 && settings.width == 0) width = start.K.cols();
    if ((start.K.size() > 0) != (start.Q.size() > 0)) refuse("K0 and Q0 must be given together");
    const bool random = settings.init != Init::zero;
    point.arrays.push_back(first_array(start.K, "K0", random, settings, kStartLeft, d, width));
    point.arrays.push_back(first_array(start.Q, "Q0", random, settings, kStartRight, dz, width));
  } else {
    const bool random = settings.init == Init::random;
    point.arrays.push_back(first_array(start.W, "W0", random, settings, kStartLeft, d, dz));
  }
  if (settings.heads > 1 && !settings.shared_norm) {
    std::vector<RowMatrix> own;
    for (const RowMatrix& array : point.arrays) {
      const Index rows = array.rows() / settings.heads;
      for (Index h = 0; h < settings.heads; ++h) own.emplace_back(array.middleRows(h * rows, rows));
    }
    point.arrays = std::move(own);
  }
  if (settings.joint) point.arrays.emplace_back(head.v);
  point.form_product();
  return point;
}

const std::vector<const ScaledMatrix*>& ChainRule::apply(const Parameters& point, const LossGradient& at, double ridge,
                                                         Arithmetic arithmetic) {
  gradients_.clear();
  if (point.heads > 1) {
    apply_to_heads(point, at, ridge, arithmetic);
  } else if (point.param == Parametrization::KQ) {
    factor_gradients(at.W, {point.K(), point.Q()}, ridge, arithmetic, K_, Q_);
    gradients_ = {&K_, &Q_};
  } else {
    gradients_ = {&at.W};
  }
  if (point.joint) gradients_.push_back(&at.v);
  return gradients_;
}

void ChainRule::apply_to_heads(const Parameters& point, const LossGradient& at, double ridge, Arithmetic arithmetic) {
  if (point.param != Parametrization::KQ) {
    if (point.shared) {
      gradients_ = {&at.W};
    } else {
      for (const ScaledMatrix& head : at.heads) gradients_.push_back(&head);
    }
    return;
  }
  Ks_.resize(at.heads.size());
  Qs_.resize(at.heads.size());
  for (std::size_t h = 0; h < at.heads.size(); ++h) {
    const auto head = static_cast<Index>(h);
    factor_gradients(at.heads[h], {point.part(0, head), point.part(1, head)}, ridge, arithmetic, Ks_[h], Qs_[h]);
  }
  if (point.shared) {
    stack(Ks_, K_);
    stack(Qs_, Q_);
    gradients_ = {&K_, &Q_};
    return;
  }
  for (const ScaledMatrix& K : Ks_) gradients_.push_back(&K);
  for (const ScaledMatrix& Q : Qs_) gradients_.push_back(&Q);
}

}  // namespace attsvm::internal
