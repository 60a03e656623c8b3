// The rows of a task with a given selection and relaxed queries, built without the code of src/margin.
#pragma once

#include <string>
#include <vector>

#include "attsvm/verify.h"
#include "verify/ball.h"

namespace attsvm::internal::proof {

/// Thrown if an answer is refused, with the reason.
struct Refusal {
  std::string reason;
};

/// Thrown if the arithmetic is too coarse for a decision.
struct Undecided {
  std::string what;
};

[[noreturn]] inline void reject(std::string reason) { throw Refusal{std::move(reason)}; }

struct Row {
  Index query, keep, drop;  // drop: −1 in a v problem
  bool equal;
  double rhs;

  bool is_soft() const { return !equal && rhs > 0; }  ///< a soft margin may miss it
};

/// The rows of one query that prefer the same token.
struct Group {
  Index query;
  std::size_t first, count;
};

/// Where the queries and the rows of a part are among those of the whole task; messages count from there.
struct Place {
  Index first_query = 0;
  std::size_t first_row = 0;
};

/// The rows and the arrays of the task that they read.
class Question {
 public:
  /// Rule "rows": throws Refusal unless `select` and `relax` fit the task.
  Question(const AttentionTask& task, const StoredSolution& claim, Place place = {});

  const AttentionTask& task() const { return task_; }
  Index d() const { return d_; }
  Index dz() const { return dz_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Group>& groups() const { return groups_; }
  Index query_number(Index query) const { return place_.first_query + query; }      ///< in messages
  std::size_t row_number(std::size_t row) const { return place_.first_row + row; }  ///< the same

  const double* token(const Row& row, Index t) const;  ///< d numbers
  double sign(const Row& row) const { return value_problem_ ? task_.label(row.query) : 1; }
  double zeta(Index query, Index j) const {
    if (table_ != nullptr) return table_[query * dz_ + j];
    return value_problem_ ? 1 : task_.query(query)(j);
  }
  bool is_zero(const Row& row) const;  ///< δ = 0 or ζ = 0: the value is 0 for every W

  /// Multiplications to compute all row values and A(dual).
  double work() const { return work(rows_.size(), groups_.size()); }
  double work(std::size_t rows, std::size_t groups) const;  ///< of a question with so many

  // In balls, for one row at a time.
  Ball delta(const Row& row, Index j) const;
  Ball delta_size(const Row& row) const;  ///< ‖δ‖
  Ball zeta_size(Index query) const;      ///< ‖ζ‖
  /// Σ |δ_a| |(W ζ)_a|
  Ball term_sum(const Row& row, const RowMatrix& W) const;

 private:
  void add_query(Index query, const StoredSolution& claim);
  void add_graphs();

  const AttentionTask& task_;
  Place place_;
  bool value_problem_;
  Index d_, dz_;
  const double* table_ = nullptr;  // the embeddings of a next-token task, whose rows name tokens by id
  std::vector<Row> rows_;
  std::vector<Group> groups_;
};

/// The rows of the priority graphs of a next-token task, in order.
std::vector<Row> graph_rows(const AttentionTask& task);

/// Rule "rows" again: throws Refusal unless the rows in the file are these.
void require_rows(const Question& question, const StoredSolution& claim);

/// The row as messages show it: "row 3 (query 0, keep 1, drop 2)".
std::string name_of(const Question& question, std::size_t row);

/// How the question differs from the task's own.
struct Difference {
  bool own = true;                          ///< the task has a selection of its own, or a head
  std::vector<Index> changed{}, relaxed{};  ///< queries that keep other tokens; that are relaxed
};
Difference difference_from_own(const AttentionTask& task, const StoredSolution& claim);

/// Rule "whose rows": fills in own_selection, relaxed and question.
void name_question(const AttentionTask& task, const StoredSolution& claim, const Difference& difference,
                   Verification& result);

}  // namespace attsvm::internal::proof
