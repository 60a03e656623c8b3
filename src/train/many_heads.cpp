#include "train/many_heads.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/refuse.h"
#include "train/losses.h"
#include "train/optimizers.h"
#include "train/products.h"
#include "train/streams.h"

namespace attsvm::internal {
namespace {

/// How many v's the task's `head` has.
Index given_values(const AttentionTask& task) {
  const Array& head = task.arrays().head;
  return !head.given() ? 0 : head.rank() == 2 ? head.shape[0] : 1;
}

}  // namespace

void require_joint_norm(const TrainSettings& settings, std::string_view name) {
  const StepRule rule = rule_of(settings);
  if (rule.kind == StepKind::steepest && !rule.norm.is_entrywise() && !rule.norm.is_frobenius())
    refuse("{} has no meaning with {}: singular values belong to one head", name, optimizer_text(settings));
}

void require_usable_heads(const TrainSettings& settings) {
  if (settings.heads < 1) refuse("heads = {}; must be a whole number from 1 up", settings.heads);
  if (settings.heads == 1) {
    if (settings.shared_norm) refuse("shared-norm has no meaning with one head");
    return;
  }
  if (settings.optimizer == Optimizer::polyak) refuse("polyak steps have no meaning with many heads");
  if (settings.selector != Selector::soft || settings.entropy > 0 ||
      settings.temperature != TrainSettings{}.temperature)
    refuse("many heads are trained with the soft selector at temperature 1, and without an entropy penalty");
  if (settings.shared_norm) require_joint_norm(settings, "shared-norm");
}

void require_usable_heads(const TrainSettings& settings, const AttentionTask& task) {
  const Index given = given_values(task);
  if (task.head().kind == HeadKind::none && given > settings.heads)
    refuse("head has {} rows, one per head; heads = {} must be at least as many", given, settings.heads);
  if (settings.heads == 1) return;
  if (task.next_token()) refuse("a next-token task is trained with one head");
  if (task.head().kind != HeadKind::none && task.head().kind != HeadKind::linear)
    refuse("many heads are linear; this head is {}", name_of(task.head().kind));
}

Eigen::VectorXd starting_values(const AttentionTask& task, const TrainSettings& settings) {
  const Index dv = task.value_size(), given = given_values(task);
  Eigen::VectorXd v(settings.heads * dv);
  if (given > 0) v.head(given * dv) = ConstVector(f64_span(task.arrays().head).data(), given * dv);
  const Random random(settings.seed, settings.instance, kHeadValues);
  for (Index h = given; h < settings.heads; ++h) {
    double* values = v.data() + h * dv;
    random.normals({values, static_cast<std::size_t>(dv)}, static_cast<std::uint64_t>(h * dv));
    double square = 0;  // a plain loop: a seed gives the same bits everywhere
    for (Index j = 0; j < dv; ++j) square += values[j] * values[j];
    for (Index j = 0; j < dv; ++j) values[j] /= std::sqrt(square);
  }
  return v;
}

void stack(std::span<const ScaledMatrix> parts, ScaledMatrix& out) {
  const Index rows = parts[0].direction.rows(), cols = parts[0].direction.cols();
  out.direction.resize(static_cast<Index>(parts.size()) * rows, cols);
  out.log_scale = kLogZero;
  for (const ScaledMatrix& part : parts) out.log_scale = std::max(out.log_scale, part.log_scale);
  Index first = 0;
  for (const ScaledMatrix& part : parts) {
    const double factor = out.log_scale == kLogZero ? 0 : std::exp(part.log_scale - out.log_scale);
    out.direction.middleRows(first, rows) = factor * part.direction;
    first += rows;
  }
}

HeadsPass::HeadsPass(const AttentionTask& task, const PassSettings& settings, Threads& threads)
    : task_(task),
      settings_(settings),
      linear_(settings),
      threads_(threads),
      heads_(settings.heads),
      scores_(static_cast<std::size_t>(settings.heads)),
      first_{0} {
  linear_.loss = Loss::linear;
  linear_.label_smoothing = 0;
  for (Index i = 0; i < task.queries(); ++i)
    first_.push_back(first_.back() + static_cast<std::uint64_t>(task.visible(i)));
}

Index HeadsPass::query_of(const PassChoice& choice, Index row) const {
  return choice.queries.empty() ? row : choice.queries[static_cast<std::size_t>(row)];
}

/// Prepares the heads for these values.
void HeadsPass::take(const Eigen::VectorXd& v) {
  if (v_.size() == v.size() && v_ == v) return;
  v_ = v;
  head_.clear();
  const Index dv = task_.value_size();
  for (Index h = 0; h < heads_; ++h) {
    head_.push_back({.kind = HeadKind::linear, .v = v.segment(h * dv, dv)});
    if (settings_.arithmetic == Arithmetic::exact)
      scores_[static_cast<std::size_t>(h)].compute(task_, head_.back().v, threads_);
  }
}

/// Rows `begin` … `end`−1 of the pass, all heads.
void HeadsPass::work(const RowMatrix& W, const PassChoice& choice, Index count, Index begin, Index end,
                     QueryScratch& scratch) {
  const Index d = task_.key_size(), dz = task_.query_size();
  const bool exact = settings_.arithmetic == Arithmetic::exact;
  const bool fast = exact && !task_.biased() && choice.dropout == 0 && !settings_.head_gradient;
  for (Index h = 0; h < heads_; ++h) {
    times_transposed(Z_.row(begin).data(), W.data() + h * d * dz, end - begin, d, dz, U_.row(h * count + begin).data());
    // Heads do not drop the same weights.
    const std::uint64_t first_draw = static_cast<std::uint64_t>(choice.step * heads_ + h) * first_.back();
    for (Index row = begin; row < end; ++row) {
      const Index at = h * count + row, query = query_of(choice, row);
      const QueryInput input{task_,
                             linear_,
                             choice,
                             head_[static_cast<std::size_t>(h)],
                             scores_[static_cast<std::size_t>(h)],
                             query,
                             first_draw + first_[static_cast<std::size_t>(query)],
                             static_cast<double>(count),
                             U_.row(at).data(),
                             row + 1 < end ? task_.seen_keys(query_of(choice, row + 1)).data() : nullptr};
      double *g = g_.row(at).data(), *feature = settings_.head_gradient ? features_.row(at).data() : nullptr;
      parts_[static_cast<std::size_t>(at)] = fast    ? linear_query(input, scratch, g)
                                             : exact ? exact_query(input, scratch, g, feature)
                                                     : plain_query(input, scratch, g, feature);
    }
  }
  for (Index row = begin; row < end; ++row) {
    QueryGradient& query = queries_[static_cast<std::size_t>(row)];
    query = {};
    for (Index h = 0; h < heads_; ++h) query.u += parts_[static_cast<std::size_t>(h * count + row)].u;
    const LossTerms terms = loss_terms(settings_.loss, query.u, settings_.label_smoothing);
    query.loss = terms.value;
    query.log_slope = terms.log_slope;
    query.sign = terms.sign * task_.label(query_of(choice, row));
    for (Index h = 0; h < heads_; ++h) {
      QueryGradient& part = parts_[static_cast<std::size_t>(h * count + row)];
      part.sign = query.sign;
      part.log_weight += terms.log_slope;
      if (exact) continue;
      const double factor = -terms.sign * std::exp(terms.log_slope);  // the linear loss has the slope −1
      g_.row(h * count + row) *= factor;
      if (settings_.head_gradient) features_.row(h * count + row) *= factor;
    }
  }
}

/// G_h = Σ_i weight_i g_i z_iᵀ, in a scale of its own.
void HeadsPass::gather(Index head, Index count, LossGradient& out) const {
  const Index d = task_.key_size(), dz = task_.query_size(), first = head * count;
  const bool exact = settings_.arithmetic == Arithmetic::exact;
  double top = kLogZero;
  const auto part = [&](Index row) -> const QueryGradient& { return parts_[static_cast<std::size_t>(first + row)]; };
  for (Index row = 0; row < count; ++row) top = std::max(top, part(row).log_weight);
  RowMatrix weighted = g_.middleRows(first, count);
  for (Index row = 0; exact && row < count; ++row)
    weighted.row(row) *= top == kLogZero ? 0 : part(row).sign * std::exp(part(row).log_weight - top);
  ScaledMatrix& G = out.heads[static_cast<std::size_t>(head)];
  G.direction.resize(d, dz);
  transposed_times(weighted.data(), Z_.data(), d, dz, count, 0, d, G.direction.data());
  G.log_scale = exact ? top - std::log(static_cast<double>(count)) : 0;
}

void HeadsPass::evaluate(const RowMatrix& W, const Eigen::VectorXd& v, const PassChoice& choice, LossGradient& out) {
  const Index count = choice.queries.empty() ? task_.queries() : static_cast<Index>(choice.queries.size());
  const Index d = task_.key_size(), dz = task_.query_size(), dv = task_.value_size();
  const bool exact = settings_.arithmetic == Arithmetic::exact;
  take(v);
  Z_.resize(count, dz);
  for (Index row = 0; row < count; ++row) Z_.row(row) = task_.query(query_of(choice, row)).transpose();
  U_.resize(heads_ * count, d);
  g_.resize(heads_ * count, d);
  if (settings_.head_gradient) features_.resize(heads_ * count, dv);
  parts_.resize(static_cast<std::size_t>(heads_ * count));
  queries_.resize(static_cast<std::size_t>(count));

  const Index share = std::max<Index>(1, 16'384 / (task_.longest() * d * heads_));  // queries worth a thread's while
  const Index chunks = (count + share - 1) / share;
  const auto pass = [&](Index chunk) {
    QueryScratch scratch;
    work(W, choice, count, chunk * share, std::min(count, (chunk + 1) * share), scratch);
  };
  out.heads.resize(static_cast<std::size_t>(heads_));
  if (chunks == 1) {
    pass(0);
    for (Index h = 0; h < heads_; ++h) gather(h, count, out);
  } else {
    threads_.for_each(chunks, pass);
    threads_.for_each(heads_, [&](Index h) { gather(h, count, out); });
  }
  stack(out.heads, out.W);

  double loss = 0, top = kLogZero;
  for (const QueryGradient& query : queries_) {
    loss += query.loss;
    top = std::max(top, query.log_slope);
  }
  out.loss = loss / static_cast<double>(count);
  out.log_loss = log_of_mean_loss(settings_, queries_, out.loss);
  if (!settings_.head_gradient) return;
  out.v.direction.setZero(heads_ * dv, 1);
  for (Index h = 0; h < heads_; ++h) {
    for (Index row = 0; row < count; ++row) {
      const QueryGradient& query = queries_[static_cast<std::size_t>(row)];
      const double factor = exact ? query.sign * std::exp(query.log_slope - top) : 1;
      out.v.direction.middleRows(h * dv, dv) += factor * features_.row(h * count + row).transpose();
    }
  }
  out.v.log_scale = exact ? top - std::log(static_cast<double>(count)) : 0;
}

}  // namespace attsvm::internal
