#include <algorithm>

#include "attsvm/margin.h"
#include "base/refuse.h"
#include "margin/rows/difference.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr double kOne = 1;

}  // namespace

std::string_view name_of(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::attention:
      return "att";
    case ProblemKind::value:
      return "v";
    case ProblemKind::finite:
      return "finite";
    case ProblemKind::graph:
      return "graph";
  }
  throw std::logic_error("unknown problem");
}

MarginProblem::MarginProblem(const AttentionTask& task, Selection selection, ProblemKind kind)
    : task_(task),
      selection_(std::move(selection)),
      kind_(kind),
      relaxed_(static_cast<std::size_t>(kind == ProblemKind::graph ? 0 : task.queries()), false),
      d_(kind == ProblemKind::value ? task.value_size() : task.key_size()),
      dz_(kind == ProblemKind::value ? 1 : task.query_size()) {
  if (kind == ProblemKind::graph) return;
  if (task.next_token()) refuse("ids: a next-token task has no selection; its rows are those of its graphs");
  if (selection_.queries() != task.queries()) {
    refuse("selection has {} queries, the task {}", selection_.queries(), task.queries());
  }
  for (Index i = 0; i < task.queries(); ++i) {
    for (const Index t : selection_.kept(i)) {
      if (!task.visible().sees(i, t)) refuse("select[{}] keeps token {}; the query does not see it", i, t);
    }
  }
  groups_.reserve(static_cast<std::size_t>(task.queries()));
}

void MarginProblem::begin_group(Index query, double sign) {
  const bool value = kind_ == ProblemKind::value;
  groups_.push_back({query, (value ? task_.seen_values(query) : task_.seen_keys(query)).data(), task_.visible(query),
                     value ? &kOne : task_.query(query).data(), place_of(query, selection_.first(query)), sign, rows(),
                     0});
}

Index MarginProblem::place_of(Index query, Index token) const {
  const auto seen = task_.seen(query);
  return std::lower_bound(seen.begin(), seen.end(), token) - seen.begin();
}

Index MarginProblem::keep_token(const MarginGroup& group) const {
  if (kind_ == ProblemKind::graph) return group.keep;
  return task_.seen(group.query)[static_cast<std::size_t>(group.keep)];
}

Index MarginProblem::drop_token(const MarginGroup& group, Index row) const {
  if (kind_ == ProblemKind::graph) return drop(row);
  return drop(row) < 0 ? -1 : task_.seen(group.query)[static_cast<std::size_t>(drop(row))];
}

void MarginProblem::add_row(Index drop, bool equal, double rhs) {
  drop_.push_back(drop);
  equal_.push_back(equal ? 1 : 0);
  rhs_.push_back(rhs);
  all_positive_ = all_positive_ && !equal && rhs > 0;
}

void MarginProblem::end_group() {
  groups_.back().rows = rows() - groups_.back().first_row;
  if (groups_.back().rows == 0) groups_.pop_back();
}

MarginProblem MarginProblem::attention(const AttentionTask& task, Selection selection, std::span<const Index> relax) {
  MarginProblem problem(task, std::move(selection), ProblemKind::attention);
  for (const Index i : relax) {
    if (i < 0 || i >= task.queries()) refuse("relax: {} is not a query; must be 0 to {}", i, task.queries() - 1);
    problem.relaxed_[static_cast<std::size_t>(i)] = true;
  }
  for (Index i = 0; i < task.queries(); ++i) {
    const auto kept = problem.selection_.kept(i);
    const double margin = problem.relaxed_[static_cast<std::size_t>(i)] ? 0 : 1;
    problem.begin_group(i, 1);
    std::size_t next = 1;  // next kept token; the rows prefer the first one over the others
    const auto seen = task.seen(i);
    for (std::size_t k = 0; k < seen.size(); ++k) {
      if (seen[k] == kept[0]) continue;
      const bool equal = next < kept.size() && kept[next] == seen[k];
      if (equal) ++next;
      problem.add_row(static_cast<Index>(k), equal, equal ? 0 : margin);
    }
    problem.end_group();
  }
  return problem;
}

MarginProblem MarginProblem::value(const AttentionTask& task, Selection selection) {
  MarginProblem problem(task, std::move(selection), ProblemKind::value);
  for (Index i = 0; i < task.queries(); ++i) {
    if (problem.selection_.kept(i).size() != 1)
      refuse("select[{}] keeps several tokens; the v problem needs one per query", i);
    problem.begin_group(i, task.label(i));
    problem.add_row(-1, false, 1);
    problem.end_group();
  }
  return problem;
}

MarginProblem MarginProblem::finite_part(const AttentionTask& task, Selection selection,
                                         const RowMatrix& log_attention) {
  if (log_attention.rows() != task.queries() || log_attention.cols() != task.longest()) {
    refuse("log_attention is {} by {}; must be {} by {}", log_attention.rows(), log_attention.cols(), task.queries(),
           task.longest());
  }
  MarginProblem problem(task, std::move(selection), ProblemKind::finite);
  for (Index i = 0; i < task.queries(); ++i) {
    const auto kept = problem.selection_.kept(i);
    problem.begin_group(i, 1);
    const double* b = task.bias(i);
    for (const Index t : kept.subspan(1)) {
      const Index keep = problem.place_of(i, kept[0]), drop = problem.place_of(i, t);
      const double by_bias = b != nullptr ? b[keep] - b[drop] : 0;
      problem.add_row(drop, true, log_attention(i, kept[0]) - log_attention(i, t) - by_bias);
    }
    problem.end_group();
  }
  return problem;
}

MarginProblem MarginProblem::graph(const AttentionTask& task, std::span<const PriorityGraph> graphs) {
  MarginProblem problem(task, Selection(), ProblemKind::graph);
  for (const PriorityGraph& graph : graphs) problem.add_graph(graph);
  return problem;
}

void MarginProblem::add_graph(const PriorityGraph& graph) {
  struct Place {
    Index keep, drop;
    bool equal;
  };
  std::vector<Place> places;
  for (std::size_t k = 0; k < graph.tokens.size(); ++k) {
    if (graph.components[k] != graph.tokens[k]) places.push_back({graph.components[k], graph.tokens[k], true});
  }
  for (const PriorityGraph::Edge& edge : graph.edges) {
    if (graph.component(edge.from) != graph.component(edge.to)) places.push_back({edge.from, edge.to, false});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.keep != b.keep ? a.keep < b.keep : a.drop < b.drop; });
  const ConstRows table = task_.embeddings();
  for (const Place& place : places) {
    if (groups_.empty() || groups_.back().query != graph.last || groups_.back().keep != place.keep)
      groups_.push_back(
          {graph.last, table.data(), table.rows(), table.row(graph.last).data(), place.keep, 1, rows(), 0});
    add_row(place.drop, place.equal, place.equal ? 0 : 1);
    ++groups_.back().rows;
  }
}

void MarginProblem::delta(const MarginGroup& group, Index row, double* out) const {
  row_difference(*this, group, row, out);
}

Eigen::VectorXd MarginProblem::values(const RowMatrix& W) const {
  Eigen::VectorXd out(rows()), delta_k(d_);
  for (const MarginGroup& group : groups_) {
    const Eigen::VectorXd u = W * ConstVector(group.z, dz_);
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      delta(group, k, delta_k.data());
      out(k) = delta_k.dot(u);
    }
  }
  return out;
}

RowMatrix MarginProblem::weigh(const Eigen::VectorXd& lambda) const {
  RowMatrix A = RowMatrix::Zero(d_, dz_);
  Eigen::VectorXd g(d_), delta_k(d_);
  for (const MarginGroup& group : groups_) {
    if (lambda.segment(group.first_row, group.rows).isZero(0)) continue;
    g.setZero();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (lambda(k) == 0) continue;
      delta(group, k, delta_k.data());
      g += lambda(k) * delta_k;
    }
    A.noalias() += g * ConstVector(group.z, dz_).transpose();
  }
  return A;
}

}  // namespace attsvm
