#include "train/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/refuse.h"
#include "train/gradient.h"
#include "train/products.h"
#include "train/streams.h"

namespace attsvm::internal {
namespace {

RowMatrix drawn(const TrainSettings& settings, TrainStream stream, Index rows, Index cols) {
  RowMatrix matrix(rows, cols);
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
  if (given.size() == 0) return random ? drawn(settings, stream, rows, cols) : RowMatrix::Zero(rows, cols);
  if (given.rows() != rows || given.cols() != cols) {
    refuse("{} has shape ({},{}); must be ({},{})", name, given.rows(), given.cols(), rows, cols);
  }
  if (!given.allFinite()) refuse("{} holds a number that is not finite", name);
  return given;
}

/// Adds factor·array to `to`, in a common scale; plain arithmetic has the scale 1.
void add_scaled(ScaledMatrix& to, double factor, const RowMatrix& array, Arithmetic arithmetic) {
  if (factor == 0) return;
  if (arithmetic == Arithmetic::plain) {
    to.direction += factor * array;
    return;
  }
  const double log_factor = std::log(factor), scale = std::max(to.log_scale, log_factor);
  to.direction = to.direction * std::exp(to.log_scale - scale) + array * std::exp(log_factor - scale);
  to.log_scale = scale;
}

}  // namespace

void Parameters::form_product() {
  if (param != Parametrization::KQ) return;
  product.resize(K().rows(), Q().rows());
  times_transposed(K().data(), Q().data(), K().rows(), Q().rows(), K().cols(), product.data());
}

Head starting_head(const AttentionTask& task, const Start& start) {
  Head head = task.head();
  if (task.next_token()) {
    if (start.v.size() > 0) refuse("v0 has no meaning: a next-token task has no head");
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
  Parameters point{.param = settings.param, .joint = settings.joint};
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
  if (settings.joint) point.arrays.emplace_back(head.v);
  point.form_product();
  return point;
}

const std::vector<const ScaledMatrix*>& ChainRule::apply(const Parameters& point, const LossGradient& at, double ridge,
                                                         Arithmetic arithmetic) {
  gradients_.clear();
  if (point.param == Parametrization::KQ) {
    const RowMatrix &G = at.W.direction, &K = point.K(), &Q = point.Q();
    K_.direction.resize(K.rows(), K.cols());
    Q_.direction.resize(Q.rows(), Q.cols());
    times(G.data(), Q.data(), K.rows(), K.cols(), Q.rows(), K_.direction.data());
    transposed_times(G.data(), K.data(), Q.rows(), Q.cols(), K.rows(), 0, Q.rows(), Q_.direction.data());
    K_.log_scale = Q_.log_scale = at.W.log_scale;
    add_scaled(K_, 2 * ridge, K, arithmetic);
    add_scaled(Q_, 2 * ridge, Q, arithmetic);
    gradients_ = {&K_, &Q_};
  } else {
    gradients_ = {&at.W};
  }
  if (point.joint) gradients_.push_back(&at.v);
  return gradients_;
}

}  // namespace attsvm::internal
