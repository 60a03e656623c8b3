#include "train/label_pass.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/blas.h"
#include "base/kernels/stream.h"
#include "train/losses.h"
#include "train/products.h"

namespace attsvm::internal {
namespace {

/// What one sequence adds: e^{log_weight}·g to the gradient with respect to W z, and ℓ(u) to the loss. Exact arithmetic
/// alone needs u.
struct LabelTerms {
  double log_weight = kLogZero, u = 0, loss = 0;
};

struct LabelScratch {
  std::vector<double> logits;
  Eigen::VectorXd g;
};

/// With r_t the weights among the tokens other than the label, ∂ℓ/∂(W z) = |ℓ′(u)| Σ r_t (e_t − e_label).
LabelTerms exact_terms(const AttentionTask& task, Index query, Loss loss, LabelScratch& scratch) {
  const auto ids = task.ids(query);
  const ConstRows table = task.embeddings();
  const Index label = task.next(query), d = table.cols();
  const double* aim = table.row(label).data();
  double* a = scratch.logits.data();
  const double base = a[std::find(ids.begin(), ids.end(), label) - ids.begin()];
  double copies = 0, top = kLogZero, all = 0, apart = kLogZero;  // apart: as top, without twins of the label
  const auto count = ids.size();
  for (std::size_t t = 0; t < count; ++t) {
    a[t] -= base;
    all += a[t];
    if (ids[t] == label) {
      ++copies;
      continue;
    }
    top = std::max(top, a[t]);
    const double* x = table.row(ids[t]).data();
    if (a[t] != 0 || !std::equal(x, x + d, aim)) apart = std::max(apart, a[t]);
  }
  LabelTerms out;
  scratch.g.setZero(d);
  if (!std::isfinite(all)) {
    scratch.g.setConstant(std::nan(""));
    return {0, std::nan(""), std::nan("")};
  }
  if (top == kLogZero) {  // nothing but the label: all attention is on it
    out.u = std::numeric_limits<double>::infinity();
    return out;
  }
  double sum = 0;
  for (std::size_t t = 0; t < count; ++t) {
    if (ids[t] != label) sum += std::exp(a[t] - top);
  }
  out.u = std::log(copies) - top - std::log(sum);
  const LossTerms terms = loss_terms(loss, out.u);
  out.loss = terms.value;
  if (apart == kLogZero) return out;
  for (std::size_t t = 0; t < count; ++t) {
    const double factor = ids[t] == label ? 0 : std::exp(a[t] - apart) / sum;
    if (factor == 0 || !std::isfinite(factor)) continue;  // infinite: a twin far above the others, with difference 0
    const double* x = table.row(ids[t]).data();
    for (Index j = 0; j < d; ++j) scratch.g[j] += factor * (x[j] - aim[j]);
  }
  out.log_weight = terms.log_slope + apart - top;
  return out;
}

/// As deep-learning frameworks do it: cross entropy of the log-softmax, copies of the label added up. The copies have a
/// softmax of their own, since the attention on them may be below the smallest number.
LabelTerms plain_terms(const AttentionTask& task, Index query, double count, LabelScratch& scratch) {
  const auto ids = task.ids(query);
  const ConstRows table = task.embeddings();
  const Index label = task.next(query);
  const std::span<const double> a = std::span(scratch.logits).first(ids.size());
  double top = kLogZero, label_top = kLogZero, sum = 0, label_sum = 0;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    top = std::max(top, a[t]);
    if (ids[t] == label) label_top = std::max(label_top, a[t]);
  }
  for (std::size_t t = 0; t < ids.size(); ++t) {
    sum += std::exp(a[t] - top);
    if (ids[t] == label) label_sum += std::exp(a[t] - label_top);
  }
  scratch.g.setZero(table.cols());
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const double share = ids[t] == label ? std::exp(a[t] - label_top) / label_sum : 0;
    scratch.g += (std::exp(a[t] - top) / sum - share) / count * table.row(ids[t]).transpose();
  }
  return {.log_weight = 0, .loss = top - label_top + std::log(sum) - std::log(label_sum)};
}

}  // namespace

LabelPass::LabelPass(const AttentionTask& task, const PassSettings& settings, Threads& threads)
    : task_(task), settings_(settings), threads_(threads), order_(static_cast<std::size_t>(task.queries())) {
  std::vector<bool> seen(static_cast<std::size_t>(task.vocabulary_size()), false);
  for (Index i = 0; i < task.queries(); ++i) seen[static_cast<std::size_t>(task.last(i))] = true;
  for (Index k = 0; k < task.vocabulary_size(); ++k) {
    if (seen[static_cast<std::size_t>(k)]) lasts_.push_back(k);
  }
  std::iota(order_.begin(), order_.end(), Index{0});
  std::stable_sort(order_.begin(), order_.end(), [&](Index a, Index b) { return task.last(a) < task.last(b); });
  Z_.resize(static_cast<Index>(lasts_.size()), task.query_size());
  for (std::size_t k = 0; k < lasts_.size(); ++k) Z_.row(static_cast<Index>(k)) = task.embeddings().row(lasts_[k]);
  cut(all_, order_);
}

void LabelPass::cut(std::vector<Piece>& pieces, std::span<const Index> order) const {
  constexpr std::size_t kLongest = 256;
  pieces.clear();
  for (std::size_t first = 0; first < order.size();) {
    const Index last = task_.last(order[first]);
    std::size_t end = first;
    while (end < order.size() && end - first < kLongest && task_.last(order[end]) == last) ++end;
    pieces.push_back({first, end, std::lower_bound(lasts_.begin(), lasts_.end(), last) - lasts_.begin()});
    first = end;
  }
}

void LabelPass::work(Piece& piece, std::span<const Index> order, double count) const {
  thread_local LabelScratch scratch;
  const bool exact = settings_.arithmetic == Arithmetic::exact;
  const ConstRows table = task_.embeddings();
  piece.loss = piece.log_sum = 0;
  piece.log_top = kLogZero;
  piece.log_scale = exact ? kLogZero : 0;
  piece.g.setZero(table.cols());
  for (std::size_t at = piece.first; at < piece.last; ++at) {
    const auto ids = task_.ids(order[at]);
    scratch.logits.resize(std::max(scratch.logits.size(), ids.size()));
    row_dots_at(table.data(), ids.data(), static_cast<Index>(ids.size()), table.cols(), U_.row(piece.query).data(),
                scratch.logits.data());
    const LabelTerms terms =
        exact ? exact_terms(task_, order[at], settings_.loss, scratch) : plain_terms(task_, order[at], count, scratch);
    piece.loss += terms.loss;
    const double log_loss =
        !exact || settings_.loss == Loss::linear ? kLogZero : log_loss_value(settings_.loss, terms.u);
    if (log_loss > piece.log_top) {
      piece.log_sum *= std::exp(piece.log_top - log_loss);
      piece.log_top = log_loss;
    }
    if (log_loss != kLogZero) piece.log_sum += std::exp(log_loss - piece.log_top);
    if (terms.log_weight > piece.log_scale) {
      piece.g *= std::exp(piece.log_scale - terms.log_weight);
      piece.log_scale = terms.log_weight;
    }
    if (terms.log_weight != kLogZero) piece.g += std::exp(terms.log_weight - piece.log_scale) * scratch.g;
  }
}

void LabelPass::evaluate(const RowMatrix& W, const PassChoice& choice, LossGradient& out) {
  const SingleThreadBlas blas;
  const bool all = choice.queries.empty(), exact = settings_.arithmetic == Arithmetic::exact;
  if (!all) {
    chosen_.assign(choice.queries.begin(), choice.queries.end());
    std::sort(chosen_.begin(), chosen_.end(),
              [&](Index a, Index b) { return task_.last(a) != task_.last(b) ? task_.last(a) < task_.last(b) : a < b; });
    cut(some_, chosen_);
  }
  const std::span<const Index> order = all ? order_ : chosen_;
  std::vector<Piece>& pieces = all ? all_ : some_;
  const auto count = static_cast<double>(order.size());
  const Index d = task_.key_size(), dz = task_.query_size(), queries = Z_.rows();

  U_.resize(queries, d);
  times_transposed(Z_.data(), W.data(), queries, d, dz, U_.data());
  constexpr std::size_t kPiecesPerChunk = 8;
  const auto chunks = static_cast<Index>((pieces.size() + kPiecesPerChunk - 1) / kPiecesPerChunk);
  threads_.for_each(chunks, [&](Index chunk) {
    const std::size_t first = static_cast<std::size_t>(chunk) * kPiecesPerChunk;
    for (std::size_t p = first; p < std::min(pieces.size(), first + kPiecesPerChunk); ++p)
      work(pieces[p], order, count);
  });

  double top = kLogZero, loss = 0, log_top = kLogZero, log_sum = 0;
  for (const Piece& piece : pieces) {
    top = std::max(top, piece.log_scale);
    loss += piece.loss;
    log_top = std::max(log_top, piece.log_top);
  }
  G_.setZero(queries, d);
  for (const Piece& piece : pieces) {
    if (piece.log_sum > 0) log_sum += piece.log_sum * std::exp(piece.log_top - log_top);
    if (piece.log_scale != kLogZero) G_.row(piece.query) += std::exp(piece.log_scale - top) * piece.g.transpose();
  }
  out.loss = loss / count;
  out.log_loss = settings_.loss == Loss::linear || !exact ? std::log(out.loss)
                 : log_top == kLogZero                    ? kLogZero
                                                          : log_top + std::log(log_sum / count);
  out.W.direction.resize(d, dz);
  transposed_times(G_.data(), Z_.data(), d, dz, queries, 0, d, out.W.direction.data());
  out.W.log_scale = exact ? top - std::log(count) : 0;
}

}  // namespace attsvm::internal
