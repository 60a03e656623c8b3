// The rows that a task, a selection and relaxed queries give, and what they are made of.
#pragma once

#include <string>
#include <vector>

#include "attsvm/verify.h"
#include "verify/ball.h"

namespace attsvm::proof {

/// The answer is refused.
struct Refusal {
  std::string reason;
};

/// The arithmetic at hand leaves a decision open; a finer one may not.
struct Undecided {
  std::string what;
};

[[noreturn]] inline void reject(std::string reason) { throw Refusal{std::move(reason)}; }

struct Row {
  Index query, keep, drop;  // drop: −1 in a v problem
  bool equal;
  double rhs;
};

/// The rows of one query.
struct Group {
  Index query;
  std::size_t first, count;
};

/// The task's arrays as rows read them.
class Question {
 public:
  /// Rule 1: `select` and `relax` fit the task; Refusal if not.
  Question(const AttentionTask& task, const StoredSolution& claim);

  const AttentionTask& task() const { return task_; }
  Index d() const { return d_; }
  Index dz() const { return dz_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Group>& groups() const { return groups_; }

  const double* token(const Row& row, Index t) const;  ///< d numbers
  double sign(const Row& row) const { return value_problem_ ? task_.label(row.query) : 1; }
  double zeta(Index query, Index j) const { return value_problem_ ? 1 : task_.query(query)(j); }
  bool is_zero(const Row& row) const;  ///< δ = 0 or ζ = 0: no W moves the row

  /// Multiplications that rows and A(dual) take.
  double work() const;

  // In balls, for one row at a time.
  Ball delta(const Row& row, Index j) const;
  Ball delta_size(const Row& row) const;  ///< ‖δ‖
  Ball zeta_size(Index query) const;      ///< ‖ζ‖
  /// Σ |δ_a| |(W ζ)_a|
  Ball term_sum(const Row& row, const RowMatrix& W) const;

 private:
  void add_query(Index query, const StoredSolution& claim);

  const AttentionTask& task_;
  bool value_problem_;
  Index d_, dz_;
  std::vector<Row> rows_;
  std::vector<Group> groups_;
};

/// Rule 1 again: the file's rows are these, none missing, added or altered.
void require_rows(const Question& question, const StoredSolution& claim);

/// "row 3 (query 0, keep 1, drop 2)"
std::string name_of(const Question& question, std::size_t row);

/// Rule 10: fills in own_selection, relaxed and question.
void name_question(const AttentionTask& task, const StoredSolution& claim, Verification& result);

}  // namespace attsvm::proof
