#include "train/loss_sum.h"

#include <algorithm>

#include "train/products.h"

namespace attsvm::internal {
namespace {

/// e^{from − to} where `to` is at least `from`; 0 from zero.
double factor(double from, double to) { return from == kLogZero ? 0 : std::exp(from - to); }

/// to = e^{log_to}·to + e^{log_from}·from, in the larger of both scales.
template <class Numbers>
void add_scaled(Numbers& to, double& log_to, const Numbers& from, double log_from) {
  const double top = std::max(log_to, log_from), keep = factor(log_to, top), take = factor(log_from, top);
  if (keep != 1) to *= keep;
  to += take * from;
  log_to = top;
}

template <class Term>
LogSum log_sum(std::span<const QueryGradient> queries, Term term) {
  LogSum out;
  for (const QueryGradient& query : queries) out.top = std::max(out.top, term(query));
  if (std::isinf(out.top)) return out;
  for (const QueryGradient& query : queries) out.sum += std::exp(term(query) - out.top);
  return out;
}

}  // namespace

void LogSum::add(const LogSum& other) {
  const double larger = std::max(top, other.top);
  if (std::isinf(larger)) {
    top = larger;
    return;
  }
  sum = factor(top, larger) * sum + factor(other.top, larger) * other.sum;
  top = larger;
}

void LossSum::add(const LossSum& other) {
  loss += other.loss;
  best += other.best;
  small_losses.add(other.small_losses);
  excess.add(other.excess);
  add_scaled(W, log_W, other.W, other.log_W);
  if (v.size() > 0) add_scaled(v, log_v, other.v, other.log_v);
}

void LossSum::put_into(Packer& out) const {
  out.put(loss).put(best).put(small_losses).put(excess).put(log_W).put(log_v).put(W).put(v);
}

LossSum LossSum::from(Unpacker& in) {
  LossSum sum;
  sum.loss = in.get<double>();
  sum.best = in.get<double>();
  sum.small_losses = in.get<LogSum>();
  sum.excess = in.get<LogSum>();
  sum.log_W = in.get<double>();
  sum.log_v = in.get<double>();
  sum.W = in.matrix<RowMatrix>();
  sum.v = in.matrix<Eigen::VectorXd>();
  return sum;
}

PassRows PassRows::part(Index first, Index count, Index d, Index dz, Index width) const {
  return {queries.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), g + first * d,
          Z + first * dz, features == nullptr ? nullptr : features + first * width};
}

LossSum LossSums::of(const PassRows& rows, RowMatrix memory) const {
  const bool exact = settings.arithmetic == Arithmetic::exact;
  const auto size = static_cast<Index>(rows.queries.size());
  LossSum sum;
  double top = kLogZero, top_slope = kLogZero;
  for (const QueryGradient& query : rows.queries) {
    top = std::max(top, query.log_weight);
    top_slope = std::max(top_slope, query.log_slope);
    sum.loss += query.loss;
    sum.best += query.best_loss;
  }
  if (may_underflow(settings, sum.loss / static_cast<double>(count)))
    sum.small_losses =
        log_sum(rows.queries, [&](const QueryGradient& query) { return log_loss_value(settings.loss, query.u); });
  if (settings.excess && exact)
    sum.excess = log_sum(rows.queries, [](const QueryGradient& query) { return query.log_excess; });

  // A common exponent for all queries, then Σ_i weight_i g_i z_iᵀ.
  sum.log_W = exact ? top : 0;
  if (exact) {
    for (Index row = 0; row < size; ++row) {
      const QueryGradient& query = rows.queries[static_cast<std::size_t>(row)];
      Eigen::Map<Eigen::RowVectorXd>(rows.g + row * d, d) *=
          top == kLogZero ? 0 : query.sign * std::exp(query.log_weight - top);
    }
  }
  sum.W = std::move(memory);
  sum.W.resize(d, dz);
  constexpr Index kRows = 64;
  const Index blocks = in_one ? 1 : (d + kRows - 1) / kRows, share = in_one ? d : kRows;
  const auto gather = [&](Index block) {
    transposed_times(rows.g, rows.Z, d, dz, size, block * share, std::min(d, (block + 1) * share), sum.W.data());
  };
  if (blocks == 1) {
    gather(0);
  } else {
    threads.for_each(blocks, gather);
  }

  if (!settings.head_gradient) return sum;
  sum.log_v = exact ? top_slope : 0;
  sum.v.setZero(width);
  for (Index row = 0; row < size; ++row) {
    const QueryGradient& query = rows.queries[static_cast<std::size_t>(row)];
    sum.v += (exact ? query.sign * std::exp(query.log_slope - top_slope) : 1) *
             ConstVector(rows.features + row * width, width);
  }
  return sum;
}

void LossSegments::take(Index first, PassRows rows, RowMatrix memory) {
  const auto count = static_cast<Index>(rows.queries.size());
  for (Index at = 0; at < count;) {
    const Index segment = segments_.of(first + at);
    const Index size = std::min(segments_.end(segment) - (first + at), count - at);
    const PassRows piece = rows.part(at, size, sums_.d, sums_.dz, sums_.width);
    if (size == segments_.end(segment) - segments_.begin(segment)) {
      whole_.push({segment, 1, sums_.of(piece, std::move(memory))});
      memory = {};
    } else {
      take_loose(first + at, piece);
    }
    at += size;
  }
}

void LossSegments::take_loose(Index first, const PassRows& rows) {
  const Index segment = segments_.of(first);
  if (loose_.empty() || segments_.of(loose_.back().first) != segment) loose_.push_back({.first = first});
  Loose& loose = loose_.back();
  const auto size = static_cast<Index>(rows.queries.size());
  const auto append = [&](std::vector<double>& to, const double* from, Index columns) {
    if (from != nullptr) to.insert(to.end(), from, from + size * columns);
  };
  loose.queries.insert(loose.queries.end(), rows.queries.begin(), rows.queries.end());
  append(loose.g, rows.g, sums_.d);
  append(loose.Z, rows.Z, sums_.dz);
  append(loose.features, rows.features, sums_.width);
  if (loose.first != segments_.begin(segment) ||
      loose.first + static_cast<Index>(loose.queries.size()) != segments_.end(segment))
    return;
  PassRows all{loose.queries, loose.g.data(), loose.Z.data(), loose.features.empty() ? nullptr : loose.features.data()};
  whole_.push({segment, 1, sums_.of(all)});
  loose_.pop_back();
}

std::string LossSegments::packed() {
  Packer out;
  // The loose rows before the segments that are whole, those segments, the loose rows after them.
  const auto put_loose = [&](bool before) {
    for (const Loose& loose : loose_) {
      const bool earlier = whole_.nodes().empty() || segments_.of(loose.first) < whole_.nodes().front().first;
      if (earlier != before) continue;
      out.put('l').put(loose.first).put(std::span(loose.queries)).put(std::span(loose.g)).put(std::span(loose.Z));
      out.put(std::span(loose.features));
    }
  };
  put_loose(true);
  for (const SumNode<LossSum>& node : whole_.nodes()) {
    out.put('s').put(node.first).put(node.size);
    node.sum.put_into(out);
  }
  put_loose(false);
  return out.take();
}

void LossSegments::take(std::string_view packed) {
  for (Unpacker in(packed); !in.done();) {
    const bool loose = in.get<char>() == 'l';
    const Index first = in.get<Index>();
    if (loose) {
      const auto queries = in.list<QueryGradient>();
      auto g = in.list<double>();
      const auto Z = in.list<double>(), features = in.list<double>();
      take_loose(first, {queries, g.data(), Z.data(), features.empty() ? nullptr : features.data()});
    } else {
      const Index size = in.get<Index>();
      whole_.push({first, size, LossSum::from(in)});
    }
  }
}

}  // namespace attsvm::internal
