#include "train/gradient.h"

#include <cmath>

#include "attsvm/train.h"
#include "base/blas.h"
#include "base/refuse.h"
#include "train/label_pass.h"
#include "train/losses.h"
#include "train/many_heads.h"
#include "train/products.h"
#include "train/query_pass.h"

namespace attsvm::internal {
bool ScaledMatrix::is_zero() const { return log_scale == kLogZero || (direction.array() == 0).all(); }

void ScaledMatrix::divide(double divisor, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::plain) {
    direction /= divisor;
  } else {
    log_scale -= std::log(divisor);
  }
}

double ScaledMatrix::log_norm() const { return is_zero() ? kLogZero : log_scale + std::log(direction.stableNorm()); }

struct GradientPass::State {
  const AttentionTask& task;
  PassSettings settings;
  Threads& threads;
  SingleThreadBlas blas{};
  RowMatrix Z{};                       // (q,dz), all queries
  RowMatrix chosen{};                  // the rows of Z that a minibatch takes
  RowMatrix U{}, g{}, features{};      // one row per query taken: W z_i, g_i, ∂h/∂v
  std::vector<std::uint64_t> first{};  // number of each query's first attention weight among all
  std::vector<QueryGradient> queries{};
  std::vector<QueryScratch> scratch{};
  TokenScores scores{};
  Eigen::VectorXd scored{};             // the v that `scores` are for
  std::unique_ptr<LabelPass> labels{};  // next-token tasks: does it all
  std::unique_ptr<HeadsPass> many{};    // many heads: does it all

  Index chunks(Index count) const;
};

/// How many chunks a pass has: one for a small task, several for a large one. Depends on the sizes alone.
Index GradientPass::State::chunks(Index count) const {
  constexpr Index kWorth = 32'768, kMost = 64;
  const Index mean_length = static_cast<Index>(first.back()) / task.queries();
  const Index work = count * (mean_length + task.query_size()) * task.key_size();
  return std::clamp<Index>(work / kWorth, 1, std::min(kMost, count));
}

GradientPass::GradientPass(const AttentionTask& task, const PassSettings& settings, Threads& threads)
    : state_(new State{task, settings, threads}) {
  if (settings.excess && task.head().kind != HeadKind::linear && task.head().kind != HeadKind::none) {
    refuse("head is {}; L - L* needs a linear one", name_of(task.head().kind));
  }
  State& state = *state_;
  if (task.next_token()) {
    state.labels = std::make_unique<LabelPass>(task, settings, threads);
    return;
  }
  if (settings.heads > 1) {
    state.many = std::make_unique<HeadsPass>(task, settings, threads);
    return;
  }
  state.Z.resize(task.queries(), task.query_size());
  state.first.push_back(0);
  for (Index i = 0; i < task.queries(); ++i) {
    state.Z.row(i) = task.query(i).transpose();
    state.first.push_back(state.first.back() + static_cast<std::uint64_t>(task.visible(i)));
  }
}

GradientPass::~GradientPass() = default;
GradientPass::GradientPass(GradientPass&&) noexcept = default;

void GradientPass::evaluate(const RowMatrix& W, const Head& head, const PassChoice& choice, LossGradient& out) {
  State& state = *state_;
  if (state.labels) return state.labels->evaluate(W, choice, out);
  if (state.many) return state.many->evaluate(W, head.v, choice, out);
  const AttentionTask& task = state.task;
  const bool all = choice.queries.empty(), exact = state.settings.arithmetic == Arithmetic::exact;
  const bool fast = exact && head.kind == HeadKind::linear && choice.dropout == 0 &&
                    choice.selector == Selector::soft && choice.entropy == 0 && !state.settings.excess &&
                    !state.settings.head_gradient;
  const Index count = all ? task.queries() : static_cast<Index>(choice.queries.size());
  const Index d = task.key_size(), dz = task.query_size(), width = head.v.size();
  const auto query_of = [&](Index row) { return all ? row : choice.queries[static_cast<std::size_t>(row)]; };

  if (head.kind == HeadKind::linear && (exact || state.settings.excess) &&
      (state.scored.size() != width || state.scored != head.v)) {
    state.scores.compute(task, head.v, state.threads);
    state.scored = head.v;
  }
  if (!all) {
    state.chosen.resize(count, dz);
    for (Index row = 0; row < count; ++row) state.chosen.row(row) = state.Z.row(query_of(row));
  }
  const double* Z = all ? state.Z.data() : state.chosen.data();
  state.U.resize(count, d);
  state.g.resize(count, d);
  if (state.settings.head_gradient) state.features.resize(count, width);
  state.queries.resize(static_cast<std::size_t>(count));

  // Computes u_i = W z_i for many queries at once, then passes through each query by itself.
  const Index chunks = state.chunks(count), share = (count + chunks - 1) / chunks;
  constexpr Index kQueries = 128;
  const auto multiply = [&](Index block) {
    const Index begin = block * kQueries, rows = std::min(count, begin + kQueries) - begin;
    times_transposed(Z + begin * dz, W.data(), rows, d, dz, state.U.row(begin).data());
  };
  if (state.scratch.size() < static_cast<std::size_t>(chunks)) state.scratch.resize(static_cast<std::size_t>(chunks));
  const auto pass = [&](Index chunk) {
    const Index begin = chunk * share, end = std::min(count, begin + share);
    if (begin >= end) return;
    for (Index row = begin; row < end; ++row) {
      const QueryInput input{task,
                             state.settings,
                             choice,
                             head,
                             state.scores,
                             query_of(row),
                             state.first[static_cast<std::size_t>(query_of(row))],
                             static_cast<double>(count),
                             state.U.row(row).data(),
                             row + 1 < end ? task.seen_keys(query_of(row + 1)).data() : nullptr};
      double* feature = state.settings.head_gradient ? state.features.row(row).data() : nullptr;
      QueryScratch& scratch = state.scratch[static_cast<std::size_t>(chunk)];
      double* g = state.g.row(row).data();
      QueryGradient& query = state.queries[static_cast<std::size_t>(row)];
      query = fast                                     ? linear_query(input, scratch, g)
              : choice.selector == Selector::dirichlet ? dirichlet_query(input, scratch, g, feature)
              : exact                                  ? exact_query(input, scratch, g, feature)
                                                       : plain_query(input, scratch, g, feature);
      if (choice.entropy > 0) add_entropy(input, scratch, query, g);
    }
  };
  if (chunks == 1) {
    times_transposed(Z, W.data(), count, d, dz, state.U.data());
    pass(0);
  } else {
    state.threads.for_each((count + kQueries - 1) / kQueries, multiply);
    state.threads.for_each(chunks, pass);
  }

  // Finds a common exponent for all queries, then G = Σ_i weight_i g_i z_iᵀ.
  double top = kLogZero, top_slope = kLogZero, loss = 0, best = 0;
  for (const QueryGradient& query : state.queries) {
    top = std::max(top, query.log_weight);
    top_slope = std::max(top_slope, query.log_slope);
    loss += query.loss;
    best += query.best_loss;
  }
  const double scale = exact ? -std::log(static_cast<double>(count)) : 0;
  out.loss = loss / static_cast<double>(count);
  out.log_loss = log_of_mean_loss(state.settings, state.queries, out.loss);
  if (state.settings.excess) {
    out.log_excess = exact ? log_mean(state.queries, [](const QueryGradient& query) { return query.log_excess; })
                           : std::log(out.loss - best / static_cast<double>(count));
  }
  out.W.direction.resize(d, dz);
  if (exact) {
    for (Index row = 0; row < count; ++row) {
      const QueryGradient& query = state.queries[static_cast<std::size_t>(row)];
      state.g.row(row) *= top == kLogZero ? 0 : query.sign * std::exp(query.log_weight - top);
    }
  }
  constexpr Index kRows = 64;
  const Index blocks = chunks == 1 ? 1 : (d + kRows - 1) / kRows, rows = chunks == 1 ? d : kRows;
  const auto gather = [&](Index block) {
    transposed_times(state.g.data(), Z, d, dz, count, block * rows, std::min(d, (block + 1) * rows),
                     out.W.direction.data());
  };
  if (blocks == 1) {
    gather(0);
  } else {
    state.threads.for_each(blocks, gather);
  }
  out.W.log_scale = exact ? top + scale : 0;

  if (!state.settings.head_gradient) return;
  out.v.direction.setZero(width, 1);
  for (Index row = 0; row < count; ++row) {
    const QueryGradient& query = state.queries[static_cast<std::size_t>(row)];
    const double factor = exact ? query.sign * std::exp(query.log_slope - top_slope) : 1;
    out.v.direction += factor * state.features.row(row).transpose();
  }
  out.v.log_scale = exact ? top_slope + scale : 0;
}

}  // namespace attsvm::internal
