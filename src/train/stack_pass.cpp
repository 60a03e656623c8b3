#include "train/stack_pass.h"

#include <algorithm>
#include <cmath>

#include "train/losses.h"

namespace attsvm::internal {
namespace {

/// Makes room in the sum e^{log_scale}·sum for a term of size e^{log_term}. Returns the factor that brings the term to
/// the sum's scale.
template <class Sum>
double make_room(Sum&& sum, double& log_scale, double log_term) {
  if (log_term <= log_scale) return log_term == kLogZero ? 0 : std::exp(log_term - log_scale);
  if (log_scale != kLogZero) sum *= std::exp(log_scale - log_term);
  log_scale = log_term;
  return 1;
}

/// One row per token, each times e^{logs}.
struct ScaledRows {
  RowMatrix rows;
  std::vector<double> logs;

  ScaledRows(Index count, Index size)
      : rows(RowMatrix::Zero(count, size)), logs(static_cast<std::size_t>(count), kLogZero) {}
  double log(Index row) const { return logs[static_cast<std::size_t>(row)]; }
  template <class Vector>
  void add(Index row, double log_term, double factor, const Vector& vector) {
    if (factor == 0 || log_term == kLogZero) return;
    const double fit = make_room(rows.row(row), logs[static_cast<std::size_t>(row)], log_term);
    rows.row(row) += fit * factor * vector.transpose();
  }
  /// The vector has the row's exponent. A row that becomes zero loses it, or it would drown what is added later.
  template <class Vector>
  void add_in_scale(Index row, const Vector& vector) {
    rows.row(row) += vector.transpose();
    if (rows.row(row).isZero(0)) logs[static_cast<std::size_t>(row)] = kLogZero;
  }
};

void add_outer(ScaledMatrix& sum, double log_term, const Eigen::VectorXd& left, const Eigen::VectorXd& right) {
  if (log_term == kLogZero || left.isZero(0)) return;
  const double fit = make_room(sum.direction, sum.log_scale, log_term);
  sum.direction.noalias() += (fit * left) * right.transpose();
}

Index seen_by(const Stack& stack, Index q, Index T) { return stack.causal ? q + 1 : T; }

/// x + Bᵀ relu(A x) of the rows first … last − 1.
void transform(const RowMatrix& A, const RowMatrix& B, Index first, Index last, RowMatrix& X, MlpTrace& trace) {
  const Index count = last - first;
  trace.inputs = X;
  trace.hidden.setZero(X.rows(), A.rows());
  trace.hidden.middleRows(first, count).noalias() = X.middleRows(first, count) * A.transpose();
  X.middleRows(first, count).noalias() += trace.hidden.middleRows(first, count).cwiseMax(0) * B;
}

void attend(const Stack& stack, const RowMatrix& W, const RowMatrix& X, Index first, Index last, HeadTrace& trace) {
  const Index T = X.rows();
  trace.log_weights.setConstant(T, T, kLogZero);
  trace.sums.setZero(T);
  trace.peaks.assign(static_cast<std::size_t>(T), 0);
  trace.mixed.setZero(T, X.cols());
  for (Index q = first; q < last; ++q) {
    const Index seen = seen_by(stack, q, T);
    const Eigen::VectorXd u = W * X.row(q).transpose();
    Eigen::VectorXd a = X.topRows(seen) * u;
    Index peak = 0;
    const double top = a.maxCoeff(&peak);
    a.array() -= top;
    const Eigen::VectorXd weights = a.array().exp();
    trace.log_weights.row(q).head(seen) = a.transpose();
    trace.sums[q] = weights.sum();
    trace.peaks[static_cast<std::size_t>(q)] = peak;
    trace.mixed.row(q).noalias() = (weights / trace.sums[q]).transpose() * X.topRows(seen);
  }
}

/// The way back of one sequence, from the output to all matrices.
class WayBack {
 public:
  WayBack(const Stack& stack, const StackTrace& trace, bool values, StackGradient& out)
      : stack_(stack), trace_(trace), values_(values), out_(out) {}

  /// From e^{log}·slope, the derivative by the token that is read.
  void run(double log, const Eigen::VectorXd& slope) {
    ScaledRows above(trace_.inputs.front().rows(), slope.size());
    above.add(trace_.readout, log, 1, slope);
    for (Index layer = stack_.layers - 1; layer >= 0; --layer) {
      if (!trace_.mlps.empty()) pass_mlp(at(layer), above);
      ScaledRows below = above;  // the residual
      for (Index head = 0; head < stack_.heads; ++head) {
        for (Index q = trace_.first[at(layer)]; q < trace_.last[at(layer)]; ++q) {
          if (above.log(q) != kLogZero) pass(layer, head, q, above.rows.row(q).transpose(), above.log(q), below);
        }
      }
      above = std::move(below);
    }
  }

 private:
  static std::size_t at(Index k) { return static_cast<std::size_t>(k); }

  /// Through the MLP of a layer: g becomes g + Aᵀ D B g, where D picks the units that are active.
  void pass_mlp(std::size_t layer, ScaledRows& rows) {
    const RowMatrix &A = stack_.A[layer], &B = stack_.B[layer];
    const MlpTrace& trace = trace_.mlps[layer];
    for (Index q = trace_.first[layer]; q < trace_.last[layer]; ++q) {
      const Eigen::VectorXd hidden = trace.hidden.row(q).transpose();
      if (rows.log(q) == kLogZero || hidden.maxCoeff() <= 0) continue;
      const Eigen::VectorXd g = rows.rows.row(q).transpose();
      const Eigen::VectorXd slope = (hidden.array() > 0).select(B * g, 0);
      if (values_) {
        add_outer(out_.A[layer], rows.log(q), slope, trace.inputs.row(q).transpose());
        add_outer(out_.B[layer], rows.log(q), hidden.cwiseMax(0), g);
      }
      rows.add_in_scale(q, A.transpose() * slope);
    }
  }

  /// Through the softmax of one head at position q, whose output has the derivative e^{log}·g.
  void pass(Index layer, Index head, Index q, const Eigen::VectorXd& g, double log, ScaledRows& below) {
    const std::size_t k = stack_.at(layer, head);
    const RowMatrix& X = trace_.inputs[at(layer)];
    const HeadTrace& trace = trace_.heads[k];
    const Index seen = seen_by(stack_, q, X.rows()), p = trace.peaks[at(q)];
    const auto e = trace.log_weights.row(q);
    const double sum = trace.sums[q];
    const Eigen::VectorXd scores = stack_.V[k] * g;  // of token t: scoresᵀ x_t
    if (values_) add_outer(out_.V[k], log, trace.mixed.row(q).transpose(), g);

    // Scores relative to the peak's: their mean is e^top·lead. Tokens that tie with the peak give no first-order
    // signal and may outweigh all others, so they are left out of the sum.
    Eigen::VectorXd gap(seen);
    for (Index t = 0; t < seen; ++t) gap[t] = t == p ? 0 : scores.dot((X.row(t) - X.row(p)).transpose());
    double top = kLogZero, lead = 0;
    for (Index t = 0; t < seen; ++t) {
      if (gap[t] != 0) top = std::max(top, e[t]);
    }
    for (Index t = 0; t < seen; ++t) {
      if (gap[t] != 0) lead += std::exp(e[t] - top) * gap[t] / sum;
    }
    const double drift = top == kLogZero ? 0 : std::exp(top) * lead;
    // The derivative by the logit of token t is e^{exponent}·slope.
    const auto exponent = [&](Index t) { return top == kLogZero ? kLogZero : gap[t] != 0 ? e[t] : e[t] + top; };
    const auto slope = [&](Index t) { return (gap[t] != 0 ? gap[t] - drift : -lead) / sum; };

    double scale = kLogZero;
    for (Index t = 0; t < seen; ++t) {
      if (t != p) scale = std::max(scale, exponent(t));
    }
    Eigen::VectorXd turn = Eigen::VectorXd::Zero(X.cols());  // Σ_t slope_t (x_t − x_p), times e^scale
    for (Index t = 0; t < seen && scale != kLogZero; ++t) {
      if (t != p) turn += std::exp(exponent(t) - scale) * slope(t) * (X.row(t) - X.row(p)).transpose();
    }
    const Eigen::VectorXd x = X.row(q).transpose(), u = stack_.W[k] * x;
    add_outer(out_.W[k], log + scale, turn, x);
    if (layer == 0) return;  // nothing below asks
    below.add(q, log + scale, 1, Eigen::VectorXd(stack_.W[k].transpose() * turn));
    for (Index t = 0; t < seen; ++t) {
      below.add(t, log + e[t], 1 / sum, scores);
      below.add(t, log + exponent(t), slope(t), u);
    }
  }

  const Stack& stack_;
  const StackTrace& trace_;
  bool values_;
  StackGradient& out_;
};

/// Adds the gradient of one query. Returns y f.
double add_query(const AttentionTask& task, const Stack& stack, const Head& head, Loss loss, bool values, Index query,
                 Index readout, StackGradient& out) {
  const StackTrace trace = trace_through(task, stack, query, readout);
  const Eigen::VectorXd x = trace.inputs.back().row(trace.readout).transpose();
  const double y = task.label(query), u = y * head.value(x);
  const LossTerms terms = loss_terms(loss, u);
  out.loss += terms.value;
  WayBack(stack, trace, values, out).run(terms.log_slope, terms.sign * y * head.gradient(x));
  return u;
}

/// Zeros in the shapes of the matrices.
void clear(std::vector<ScaledMatrix>& sums, const std::vector<RowMatrix>& shapes) {
  sums.resize(shapes.size());
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    sums[k].direction.setZero(shapes[k].rows(), shapes[k].cols());
    sums[k].log_scale = kLogZero;
  }
}

void clear(StackGradient& sums, const Stack& stack, bool values) {
  clear(sums.W, stack.W);
  const std::vector<RowMatrix> none;
  clear(sums.V, values ? stack.V : none);
  clear(sums.A, values ? stack.A : none);
  clear(sums.B, values ? stack.B : none);
}

/// log of the mean of the losses at these outputs
double log_mean_loss(Loss loss, const std::vector<double>& outputs) {
  std::vector<double> logs;
  logs.reserve(outputs.size());
  for (const double u : outputs) logs.push_back(log_loss_value(loss, u));
  const double top = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double one : logs) sum += std::exp(one - top);
  return top + std::log(sum / static_cast<double>(logs.size()));
}

}  // namespace

std::vector<Index> readouts_of(const AttentionTask& task) {
  std::vector<Index> tokens, places;
  if (task.arrays().query_token.given()) tokens = to_indices(task.arrays().query_token, "query_token");
  for (Index i = 0; i < task.queries(); ++i) {
    const auto seen = task.seen(i);
    const Index token = tokens.empty() ? seen.back() : tokens[static_cast<std::size_t>(i)];
    places.push_back(std::lower_bound(seen.begin(), seen.end(), token) - seen.begin());
  }
  return places;
}

StackTrace trace_through(const AttentionTask& task, const Stack& stack, Index query, Index readout) {
  StackTrace trace{.readout = readout, .inputs = {task.seen_values(query)}};
  const Index T = trace.inputs.front().rows();
  trace.heads.resize(stack.W.size());
  for (Index layer = 0; layer < stack.layers; ++layer) {
    const bool at_end = layer + 1 == stack.layers;
    const Index last = at_end || stack.causal ? trace.readout + 1 : T, first = at_end ? trace.readout : 0;
    trace.first.push_back(first);
    trace.last.push_back(last);
    const RowMatrix& X = trace.inputs.back();
    RowMatrix next = X;
    for (Index head = 0; head < stack.heads; ++head) {
      const std::size_t k = stack.at(layer, head);
      attend(stack, stack.W[k], X, first, last, trace.heads[k]);
      next.noalias() += trace.heads[k].mixed * stack.V[k];
    }
    if (!stack.A.empty()) {
      const auto k = static_cast<std::size_t>(layer);
      transform(stack.A[k], stack.B[k], first, last, next, trace.mlps.emplace_back());
    }
    trace.inputs.push_back(std::move(next));
  }
  return trace;
}

void stack_gradient(const AttentionTask& task, const Stack& stack, const Head& head, Loss loss, bool values,
                    Threads& threads, StackGradient& out) {
  constexpr Index kChunks = 16;  // at most; each has sums of its own
  const Index n = task.queries(), share = (n + kChunks - 1) / kChunks;
  const Index chunks = (n + share - 1) / share;
  std::vector<StackGradient> parts(static_cast<std::size_t>(chunks));
  std::vector<double> outputs(static_cast<std::size_t>(n));
  const std::vector<Index> readouts = readouts_of(task);
  threads.for_each(chunks, [&](Index chunk) {
    StackGradient& part = parts[static_cast<std::size_t>(chunk)];
    clear(part, stack, values);
    for (Index i = chunk * share; i < std::min(n, (chunk + 1) * share); ++i) {
      const auto k = static_cast<std::size_t>(i);
      outputs[k] = add_query(task, stack, head, loss, values, i, readouts[k], part);
    }
  });
  out.loss = 0;
  clear(out, stack, values);
  const auto gather = [](ScaledMatrix& sum, const ScaledMatrix& part) {
    const double fit = make_room(sum.direction, sum.log_scale, part.log_scale);
    sum.direction += fit * part.direction;
  };
  for (const StackGradient& part : parts) {
    out.loss += part.loss / static_cast<double>(n);
    for (std::size_t list = 0; list < out.lists().size(); ++list) {
      auto& sums = *out.lists()[list];
      for (std::size_t k = 0; k < sums.size(); ++k) gather(sums[k], (*part.lists()[list])[k]);
    }
  }
  for (auto* list : out.lists()) {
    for (ScaledMatrix& sum : *list) sum.log_scale -= std::log(static_cast<double>(n));
  }
  out.log_loss = loss == Loss::linear ? std::log(out.loss) : log_mean_loss(loss, outputs);
}

}  // namespace attsvm::internal
