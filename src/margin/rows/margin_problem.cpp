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
  }
  throw std::logic_error("unknown problem");
}

MarginProblem::MarginProblem(const AttentionTask& task, Selection selection, ProblemKind kind)
    : task_(task),
      selection_(std::move(selection)),
      kind_(kind),
      relaxed_(static_cast<std::size_t>(task.queries()), false),
      d_(kind == ProblemKind::value ? task.value_size() : task.key_size()),
      dz_(kind == ProblemKind::value ? 1 : task.query_size()) {
  if (selection_.queries() != task.queries()) {
    refuse("selection has {} queries, the task {}", selection_.queries(), task.queries());
  }
  groups_.reserve(static_cast<std::size_t>(task.queries()));
}

void MarginProblem::begin_group(Index query, double sign) {
  const Index sequence = task_.sequence(query);
  const bool value = kind_ == ProblemKind::value;
  groups_.push_back({query, value ? task_.values(sequence).data() : task_.keys(sequence).data(),
                     value ? &kOne : task_.query(query).data(), selection_.first(query), sign, rows(), 0});
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
    for (Index t = 0; t < task.visible(i); ++t) {
      if (t == kept[0]) continue;
      const bool equal = next < kept.size() && kept[next] == t;
      if (equal) ++next;
      problem.add_row(t, equal, equal ? 0 : margin);
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
    for (const Index t : kept.subspan(1)) problem.add_row(t, true, log_attention(i, kept[0]) - log_attention(i, t));
    problem.end_group();
  }
  return problem;
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
