#include "train/gradient.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "attsvm/train.h"
#include "base/blas.h"
#include "base/refuse.h"
#include "train/label_pass.h"
#include "train/loss_sum.h"
#include "train/many_heads.h"
#include "train/products.h"
#include "train/shared_task.h"

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

namespace {

constexpr Index kProductRows = 128;  // queries whose W z are computed in one product

/// Rows of a pass, one per query taken. This rank has lo … hi−1. Its arrays hold from … to−1, because the bits of a
/// product may depend on how many rows it has: blocks are whole, and rows that are not here are zero.
struct Extent {
  Index lo, hi, from, to;

  Extent(Index begin, Index end, Index count, bool in_one) : lo(begin), hi(end), from(begin), to(end) {
    if (lo == hi) return;
    from = in_one ? 0 : lo / kProductRows * kProductRows;
    to = in_one ? count : std::min(count, (hi + kProductRows - 1) / kProductRows * kProductRows);
  }
  Index rows() const { return to - from; }
};

}  // namespace

struct GradientPass::State {
  SharedTask task;
  PassSettings settings;
  Threads& threads;
  SingleThreadBlas blas{};
  RowMatrix Z{};                       // all queries of this rank, and the zero rows of Extent
  RowMatrix chosen{};                  // those that a minibatch takes
  RowMatrix U{}, g{}, features{};      // one row per query taken: W z_i, g_i, ∂h/∂v
  std::vector<std::uint64_t> first{};  // number of each query's first attention weight among all
  std::vector<QueryGradient> queries{};
  std::vector<QueryScratch> scratch{};
  TokenScores scores{};
  Eigen::VectorXd scored{};             // the v that `scores` are for
  std::unique_ptr<LabelPass> labels{};  // next-token tasks: does it all
  std::unique_ptr<HeadsPass> many{};    // many heads: does it all
  std::optional<LossSums> answered{};   // how the last answer was summed

  Index chunks(Index count) const;
  LossSums sums(Index count, const Head& head);
  void pass(const RowMatrix& W, const Head& head, const PassChoice& choice, LossSegments& out, RowMatrix memory);
};

/// How many chunks a pass has: one for a small task, several for a large one. Depends on the sizes alone.
Index GradientPass::State::chunks(Index count) const {
  constexpr Index kWorth = 32'768, kMost = 64;
  const Index mean_length = static_cast<Index>(task.weights) / task.queries;
  const Index work = count * (mean_length + task.part->query_size()) * task.part->key_size();
  return std::clamp<Index>(work / kWorth, 1, std::min(kMost, count));
}

LossSums GradientPass::State::sums(Index count, const Head& head) {
  return {settings, count, task.part->key_size(), task.part->query_size(), head.v.size(), chunks(count) == 1, threads};
}

GradientPass::GradientPass(const AttentionTask& task, const PassSettings& settings, Threads& threads)
    : GradientPass(SharedTask(task), settings, threads) {}

GradientPass::GradientPass(const SharedTask& shared, const PassSettings& settings, Threads& threads)
    : state_(new State{shared, settings, threads}) {
  const AttentionTask& task = *shared.part;
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
  const Extent all(shared.first, shared.first + task.queries(), shared.queries, state.chunks(shared.queries) == 1);
  state.Z.setZero(all.rows(), task.query_size());
  state.first.push_back(shared.first_weight);
  for (Index i = 0; i < task.queries(); ++i) {
    state.Z.row(all.lo - all.from + i) = task.query(i).transpose();
    state.first.push_back(state.first.back() + static_cast<std::uint64_t>(task.visible(i)));
  }
}

GradientPass::~GradientPass() = default;
GradientPass::GradientPass(GradientPass&&) noexcept = default;

/// Passes through the queries that this rank has.
void GradientPass::State::pass(const RowMatrix& W, const Head& head, const PassChoice& choice, LossSegments& out,
                               RowMatrix memory) {
  const AttentionTask& part = *task.part;
  const bool all = choice.queries.empty(), exact = settings.arithmetic == Arithmetic::exact;
  const bool fast = exact && head.kind == HeadKind::linear && choice.dropout == 0 && !part.biased() &&
                    choice.selector == Selector::soft && choice.entropy == 0 && !settings.excess &&
                    !settings.head_gradient;
  const Index count = all ? task.queries : static_cast<Index>(choice.queries.size());
  const Index d = part.key_size(), dz = part.query_size(), width = head.v.size();
  const auto row_of = [&](Index query) {
    if (all) return query;
    return static_cast<Index>(std::lower_bound(choice.queries.begin(), choice.queries.end(), query) -
                              choice.queries.begin());
  };
  const Index pieces = chunks(count);
  const Extent at(row_of(task.first), row_of(task.first + part.queries()), count, pieces == 1);
  if (at.lo == at.hi) return;
  const auto query_of = [&](Index row) {  // among those of this rank
    return (all ? row : choice.queries[static_cast<std::size_t>(row)]) - task.first;
  };

  if (head.kind == HeadKind::linear && (exact || settings.excess) && (scored.size() != width || scored != head.v)) {
    scores.compute(part, head.v, threads);
    scored = head.v;
  }
  if (!all) {
    chosen.setZero(at.rows(), dz);
    for (Index row = at.lo; row < at.hi; ++row) chosen.row(row - at.from) = part.query(query_of(row)).transpose();
  }
  const double* zeta = all ? Z.data() : chosen.data();
  U.resize(at.rows(), d);
  g.resize(at.rows(), d);
  if (settings.head_gradient) features.resize(at.rows(), width);
  queries.resize(static_cast<std::size_t>(at.rows()));

  // Computes u_i = W z_i for many queries at once, then passes through each query by itself.
  const std::uint64_t first_draw = static_cast<std::uint64_t>(choice.step) * task.weights;
  const Index share = (at.hi - at.lo + pieces - 1) / pieces;
  const auto multiply = [&](Index block) {
    const Index begin = block * kProductRows, rows = std::min(at.rows(), begin + kProductRows) - begin;
    times_transposed(zeta + begin * dz, W.data(), rows, d, dz, U.row(begin).data());
  };
  if (scratch.size() < static_cast<std::size_t>(pieces)) scratch.resize(static_cast<std::size_t>(pieces));
  const auto through = [&](Index chunk) {
    const Index begin = at.lo + chunk * share, end = std::min(at.hi, begin + share);
    for (Index row = begin; row < end; ++row) {
      const Index query = query_of(row), place = row - at.from;
      const QueryInput input{part,
                             settings,
                             choice,
                             head,
                             scores,
                             query,
                             first_draw + first[static_cast<std::size_t>(query)],
                             static_cast<double>(count),
                             U.row(place).data(),
                             row + 1 < end ? part.seen_keys(query_of(row + 1)).data() : nullptr};
      double* feature = settings.head_gradient ? features.row(place).data() : nullptr;
      QueryScratch& own = scratch[static_cast<std::size_t>(chunk)];
      double* to = g.row(place).data();
      QueryGradient& found = queries[static_cast<std::size_t>(place)];
      found = fast                                     ? linear_query(input, own, to)
              : choice.selector == Selector::dirichlet ? dirichlet_query(input, own, to, feature)
              : exact                                  ? exact_query(input, own, to, feature)
                                                       : plain_query(input, own, to, feature);
      if (choice.entropy > 0) add_entropy(input, own, found, to);
    }
  };
  if (pieces == 1) {
    times_transposed(zeta, W.data(), at.rows(), d, dz, U.data());
    through(0);
  } else {
    threads.for_each((at.rows() + kProductRows - 1) / kProductRows, multiply);
    threads.for_each(pieces, through);
  }
  const Index skip = at.lo - at.from;
  const PassRows rows{queries, g.data(), zeta, settings.head_gradient ? features.data() : nullptr};
  out.take(at.lo, rows.part(skip, at.hi - at.lo, d, dz, width), std::move(memory));
}

void GradientPass::evaluate(const RowMatrix& W, const Head& head, const PassChoice& choice, LossGradient& out) {
  State& state = *state_;
  if (state.labels) return state.labels->evaluate(W, choice, out);
  if (state.many) return state.many->evaluate(W, head.v, choice, out);
  const Index count = choice.queries.empty() ? state.task.queries : static_cast<Index>(choice.queries.size());
  const LossSums sums = state.sums(count, head);
  LossSegments segments(sums);
  const auto own = [&] { state.pass(W, head, choice, segments, std::move(out.W.direction)); };
  if (state.task.ask) {
    Packer job;
    job.put(Job::gradient).put(W);
    pack(job, head);
    job.put(choice).put(choice.queries);
    for (const std::string& answer : state.task.ask(job.take(), own)) segments.take(answer);
  } else {
    own();
  }

  LossSum sum = segments.total();
  const bool exact = state.settings.arithmetic == Arithmetic::exact;
  const double scale = exact ? -std::log(static_cast<double>(count)) : 0;
  out.loss = sum.loss / static_cast<double>(count);
  out.log_loss =
      may_underflow(state.settings, out.loss) ? sum.small_losses.mean(static_cast<double>(count)) : std::log(out.loss);
  if (state.settings.excess) {
    out.log_excess = exact ? sum.excess.mean(static_cast<double>(count))
                           : std::log(out.loss - sum.best / static_cast<double>(count));
  }
  out.W.direction = std::move(sum.W);
  out.W.log_scale = exact ? sum.log_W + scale : 0;
  if (!state.settings.head_gradient) return;
  out.v.direction = sum.v;
  out.v.log_scale = exact ? sum.log_v + scale : 0;
}

std::string GradientPass::answer(Unpacker& job) {
  State& state = *state_;
  const RowMatrix W = job.matrix<RowMatrix>();
  const Head head = unpacked_head(job);
  PassChoice choice = job.get<PassChoice>();
  const std::vector<Index> queries = job.list<Index>();
  choice.queries = queries;
  state.answered.emplace(state.sums(queries.empty() ? state.task.queries : static_cast<Index>(queries.size()), head));
  LossSegments segments(*state.answered);
  state.pass(W, head, choice, segments, {});
  return segments.packed();
}

std::string GradientPass::merged(std::string_view own, std::string_view next) const {
  LossSegments segments(state_->answered.value());
  segments.take(own);
  segments.take(next);
  return segments.packed();
}

}  // namespace attsvm::internal
