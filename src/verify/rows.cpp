#include "verify/rows.h"

#include <algorithm>
#include <cmath>

#include "base/refuse.h"

namespace attsvm::internal::proof {

Question::Question(const AttentionTask& task, const StoredSolution& claim, Place place)
    : task_(task),
      place_(place),
      value_problem_(claim.problem == "v"),
      d_(value_problem_ ? task.value_size() : task.key_size()),
      dz_(value_problem_ ? 1 : task.query_size()) {
  if (task.next_token()) {
    if (claim.problem != "graph")
      reject(fmt::format("problem is '{}'; that of a next-token task is graph", claim.problem));
    if (claim.select.given() || !claim.relax.empty()) reject("select and relax do not belong to a graph problem");
    table_ = task.embeddings().data();
    add_graphs();
    return;
  }
  if (claim.problem != "att" && claim.problem != "v")
    reject(fmt::format("problem '{}' is unknown; must be att or v", claim.problem));
  if (claim.select.scalar != Scalar::boolean ||
      claim.select.shape != std::vector<Index>{task.queries(), task.longest()}) {
    reject(fmt::format("select has type {} and shape {}; must be bool ({},{})", attsvm::name_of(claim.select.scalar),
                       shape_text(claim.select.shape), task.queries(), task.longest()));
  }
  if (static_cast<Index>(claim.relax.size()) != task.queries()) reject("relax does not have one entry per query");
  for (Index i = 0; i < task.queries(); ++i) add_query(i, claim);
}

void Question::add_query(Index i, const StoredSolution& claim) {
  const auto sees = [&](Index t) { return t < task_.length(task_.sequence(i)) && task_.visible().sees(i, t); };
  const auto kept = [&](Index t) { return claim.select.data[i * task_.longest() + t] != std::byte{0}; };
  Index keep = -1, count = 0;
  for (Index t = 0; t < task_.longest(); ++t) {
    if (!kept(t)) continue;
    if (!sees(t)) reject(fmt::format("select[{},{}] keeps a token that the query does not see", query_number(i), t));
    if (keep < 0) keep = t;
    ++count;
  }
  if (keep < 0) reject(fmt::format("select[{}] keeps no token", query_number(i)));
  const bool relaxed = claim.relax[static_cast<std::size_t>(i)];
  const std::size_t first = rows_.size();
  if (value_problem_) {
    if (relaxed) reject(fmt::format("relax[{}] is set; a v problem has nothing to relax", query_number(i)));
    if (count > 1) reject(fmt::format("select[{}] keeps several tokens; a v problem needs one", query_number(i)));
    rows_.push_back({i, keep, -1, false, 1});
  } else {
    for (Index t = 0; t < task_.length(task_.sequence(i)); ++t) {
      if (t != keep && sees(t)) rows_.push_back({i, keep, t, kept(t), kept(t) || relaxed ? 0.0 : 1.0});
    }
  }
  if (rows_.size() > first) groups_.push_back({i, first, rows_.size() - first});
}

void Question::add_graphs() {
  rows_ = graph_rows(task_);
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    if (k == 0 || rows_[k].query != rows_[k - 1].query || rows_[k].keep != rows_[k - 1].keep)
      groups_.push_back({rows_[k].query, k, 0});
    ++groups_.back().count;
  }
}

const double* Question::token(const Row& row, Index t) const {
  if (table_ != nullptr) return table_ + t * d_;
  const Index s = task_.sequence(row.query);
  return (value_problem_ ? task_.values(s) : task_.keys(s)).row(t).data();
}

bool Question::is_zero(const Row& row) const {
  const double* keep = token(row, row.keep);
  const bool no_delta = value_problem_ ? std::all_of(keep, keep + d_, [](double x) { return x == 0; })
                                       : std::equal(keep, keep + d_, token(row, row.drop));
  if (no_delta) return true;
  for (Index j = 0; j < dz_; ++j) {
    if (zeta(row.query, j) != 0) return false;
  }
  return true;
}

double Question::work(std::size_t rows, std::size_t groups) const {
  return 2 * (static_cast<double>(rows) + static_cast<double>(groups * static_cast<std::size_t>(dz_))) *
         static_cast<double>(d_);
}

Ball Question::delta(const Row& row, Index j) const {
  const double keep = token(row, row.keep)[j];
  return value_problem_ ? Ball(sign(row)) * Ball(keep) : Ball(keep) - Ball(token(row, row.drop)[j]);
}

Ball Question::delta_size(const Row& row) const {
  Ball square;
  for (Index j = 0; j < d_; ++j) {
    const Ball entry = delta(row, j);
    arb_addmul(square.get(), entry.get(), entry.get(), WorkingBits::now());
  }
  return sqrt(square);
}

Ball Question::zeta_size(Index query) const {
  Ball square;
  for (Index j = 0; j < dz_; ++j) {
    const Ball entry(zeta(query, j));
    arb_addmul(square.get(), entry.get(), entry.get(), WorkingBits::now());
  }
  return sqrt(square);
}

Ball Question::term_sum(const Row& row, const RowMatrix& W) const {
  Ball sum;
  for (Index a = 0; a < d_; ++a) {
    Ball u;
    for (Index b = 0; b < dz_; ++b)
      arb_addmul(u.get(), Ball(W(a, b)).get(), Ball(zeta(row.query, b)).get(), WorkingBits::now());
    sum = sum + abs(delta(row, a) * u);
  }
  return sum;
}

std::string name_of(const Question& question, std::size_t k) {
  const Row& row = question.rows()[k];
  return fmt::format("row {} (query {}, keep {}, drop {})", question.row_number(k), question.query_number(row.query),
                     row.keep, row.drop);
}

void require_rows(const Question& question, const StoredSolution& claim) {
  const std::vector<Row>& rows = question.rows();
  for (const auto& [name, size] : {std::pair{"row_query", claim.row_query.size()},
                                   {"row_keep", claim.row_keep.size()},
                                   {"row_drop", claim.row_drop.size()},
                                   {"row_equal", claim.row_equal.size()},
                                   {"rhs", claim.rhs.size()},
                                   {"slack", claim.slack.size()},
                                   {"dual", claim.dual.size()}}) {
    if (size != rows.size())
      reject(fmt::format("{} has {} rows; the task and selection give {}", name, size, rows.size()));
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Row& row = rows[k];
    if (claim.row_query[k] != row.query || claim.row_keep[k] != row.keep || claim.row_drop[k] != row.drop ||
        claim.row_equal[k] != row.equal || claim.rhs[k] != row.rhs) {
      reject(fmt::format("row {} is not the one that the task and selection give (query {}, keep {}, drop {})",
                         question.row_number(k), question.query_number(row.query), row.keep, row.drop));
    }
  }
}

}  // namespace attsvm::internal::proof
