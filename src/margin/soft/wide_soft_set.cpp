#include "margin/soft/wide_soft_set.h"

#include <algorithm>

#include "margin/rows/wide_rows.h"
#include "margin/soft/soft_rows.h"

namespace attsvm::internal {
namespace {

constexpr slong kDependent = -400;  // log₂ of the squared share of a row outside the span of the set that is rounding
constexpr slong kSameEquation = -98;  // the same for equations: less than rounding the tokens may have left there
constexpr slong kNoise = -400;        // log₂ of an entry of W, relative to its terms, that is rounding
constexpr slong kNegligible = -300;  // log₂ of a step, relative to its terms or to the row that joins, that is rounding
constexpr slong kMet = -128;         // log₂ of the violation, relative to the terms, of rows that count as met
constexpr Index kMostUnknowns = 200;  // of the matrix that is factorised; by hand
constexpr Index kStepsPerRow = 20;    // most steps; by hand

}  // namespace

bool WideSoftSet::suits(const MarginProblem& problem) {
  return WideRows::suit(problem) && std::min(problem.rows(), problem.d() * problem.dz()) <= kMostUnknowns;
}

bool WideSoftSet::solve(const MarginProblem& problem, const std::vector<double>& penalty, const Eigen::VectorXd& guess,
                        const std::function<bool()>& stop, double lift) {
  iterations_ = 0;
  list_variables(problem, lift);
  start_from(problem, penalty, guess);
  if (!settle(stop)) return false;
  for (const Index limit = kStepsPerRow * (rows_.count() + 10); iterations_ < limit; ++iterations_) {
    const Index v = best_gain();
    if (v < 0) return true;
    if (stop() || !bring_in(v) || !settle(stop)) return false;
  }
  return false;
}

void WideSoftSet::list_variables(const MarginProblem& problem, double lift) {
  rows_.load(problem);
  rows_of_problem_ = problem.rows();
  variables_.clear();
  std::vector<char> live(at(problem.rows()), 0);
  for (Index k = 0; k < rows_.count(); ++k) {
    const Index row = rows_.row(k);
    const bool soft = is_soft(problem, row);
    live[at(row)] = 1;
    variables_.push_back({.row = k,
                          .source = row,
                          .query = soft ? rows_.group(k) : -1,
                          .e = soft ? Wide(1).shifted(-rows_.exponent(k)) : Wide(),
                          .b = Wide(problem.rhs(row)).shifted(-rows_.exponent(k)),
                          .equation = problem.equal(row)});
    if (soft && lift > 0) variables_.back().b += Wide(lift) * sqrt(rows_.inner(k, k));
  }
  for (std::size_t g = 0; g < problem.groups().size(); ++g) {
    const MarginGroup& group = problem.groups()[g];
    Index zero = -1;  // a soft row that no W meets: its query pays for it
    bool any = false;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (!is_soft(problem, k)) continue;
      any = true;
      if (live[at(k)] == 0 && (zero < 0 || problem.rhs(k) > problem.rhs(zero))) zero = k;
    }
    const auto query = static_cast<Index>(g);
    if (zero >= 0) variables_.push_back({.source = zero, .query = query, .e = 1, .b = problem.rhs(zero)});
    if (any) variables_.push_back({.query = query, .e = 1});
  }
}

/// Takes the multipliers of the guess on inequalities. Where they depend on each other, some of them go to 0.
void WideSoftSet::start_from(const MarginProblem& problem, const std::vector<double>& penalty,
                             const Eigen::VectorXd& guess) {
  const auto count = static_cast<Index>(variables_.size());
  x_.assign(at(count), Wide());
  member_.assign(at(count), 0);
  tried_.assign(at(count), 0);
  pivot_.assign(problem.groups().size(), -1);
  WideVector used(pivot_.size());
  for (Index v = 0; v < count; ++v) {
    const Variable& one = variables_[at(v)];
    if (one.source >= 0 && !one.equation && guess(one.source) > 0)
      x_[at(v)] = Wide(guess(one.source)).shifted(one.row >= 0 ? rows_.exponent(one.row) : 0);
    if (one.query < 0) continue;
    if (one.source < 0) {
      x_[at(v)] = Wide(penalty[at(problem.groups()[at(one.query)].query)]) - used[at(one.query)];
      if (x_[at(v)].sign() < 0) x_[at(v)] = Wide();  // rounding; the answer is kept within the penalties later
    }
    used[at(one.query)] += one.e * x_[at(v)];
    Index& pivot = pivot_[at(one.query)];
    if (pivot < 0 || (one.e * x_[at(v)] > variables_[at(pivot)].e * x_[at(pivot)])) pivot = v;
  }
  set_.clear();
  factor_.clear();
  for (const Index pivot : pivot_) {
    if (pivot >= 0) member_[at(pivot)] = 1;
  }
  for (Index v = 0; v < count; ++v) {
    if (!variables_[at(v)].equation) continue;
    Split part = split(v);
    if (part.rest.is_zero()) continue;
    push(v, std::move(part));
  }
  for (Index v = 0; v < count; ++v) {
    if (member_[at(v)] == 0 && x_[at(v)].sign() > 0) bring_in(v);
  }
}

/// Recomputes W and the values of all rows.
void WideSoftSet::refresh() {
  WideVector lambda(at(rows_.count()));
  terms_ = Wide();
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].row < 0) continue;
    lambda[at(variables_[v].row)] = x_[v];
    if (!x_[v].is_zero()) terms_ += abs(x_[v]) * sqrt(inner(static_cast<Index>(v), static_cast<Index>(v)));
  }
  rows_.weigh(lambda, W_);
  rows_.values(W_, value_);
  size_ = sqrt(dot(W_.data(), W_.data(), static_cast<Index>(W_.size())));
}

Wide WideSoftSet::inner(Index u, Index v) const {
  const Index k = variables_[at(u)].row, l = variables_[at(v)].row;
  return k < 0 || l < 0 ? Wide() : rows_.inner(k, l);
}

/// How much the pivot of its query gives for one unit of a variable; 0 if its row is not soft.
Wide WideSoftSet::ratio(Index v) const {
  const Variable& one = variables_[at(v)];
  return one.query < 0 ? Wide() : one.e / variables_[at(pivot_[at(one.query)])].e;
}

Wide WideSoftSet::reduced_inner(Index u, Index v) const {
  Wide result = inner(u, v);
  const Index p = variables_[at(u)].query < 0 ? -1 : pivot_[at(variables_[at(u)].query)];
  const Index q = variables_[at(v)].query < 0 ? -1 : pivot_[at(variables_[at(v)].query)];
  if (p >= 0) result -= ratio(u) * inner(p, v);
  if (q >= 0) result -= ratio(v) * inner(u, q);
  if (p >= 0 && q >= 0) result += ratio(u) * ratio(v) * inner(p, q);
  return result;
}

/// b − a·W
Wide WideSoftSet::missing(Index v) const {
  const Variable& one = variables_[at(v)];
  return one.row < 0 ? one.b : one.b - value_[at(one.row)];
}

WideSoftSet::Split WideSoftSet::split(Index v) const {
  Split part;
  WideVector products;
  for (const Index u : set_) products.push_back(reduced_inner(v, u));
  part.y = solve_lower(factor_, products);
  part.rest = reduced_inner(v, v) - dot(part.y.data(), part.y.data(), static_cast<Index>(part.y.size()));
  Wide whole = inner(v, v);  // its pivot may cancel it
  if (variables_[at(v)].query >= 0) {
    const Index pivot = pivot_[at(variables_[at(v)].query)];
    whole += ratio(v) * ratio(v) * inner(pivot, pivot);
  }
  if (part.rest.sign() <= 0 || part.rest <= whole.shifted(variables_[at(v)].equation ? kSameEquation : kDependent))
    part.rest = Wide();
  part.r = solve_transposed(factor_, part.y);
  return part;
}

void WideSoftSet::push(Index v, Split split) {
  split.y.push_back(sqrt(split.rest));
  factor_.push_back(std::move(split.y));
  set_.push_back(v);
  member_[at(v)] = 1;
}

/// Chooses pivots among the members anew and factorises the rest. False: rounding made it singular.
bool WideSoftSet::refactor() {
  std::fill(pivot_.begin(), pivot_.end(), -1);
  const auto count = static_cast<Index>(variables_.size());
  for (Index v = 0; v < count; ++v) {
    const Index query = variables_[at(v)].query;
    if (member_[at(v)] != 0 && query >= 0 && (pivot_[at(query)] < 0 || variables_[at(v)].row < 0))
      pivot_[at(query)] = v;
  }
  set_.clear();
  factor_.clear();
  for (Index v = 0; v < count; ++v) {
    const Variable& one = variables_[at(v)];
    if (member_[at(v)] == 0 || (one.query >= 0 && pivot_[at(one.query)] == v)) continue;
    Split part = split(v);
    if (part.rest.is_zero()) return false;
    push(v, std::move(part));
  }
  return true;
}

void WideSoftSet::leave(Index v) {
  x_[at(v)] = Wide();
  member_[at(v)] = 0;
}

/// Moves the set, a further variable (or −1) and the pivots, at most by the whole step if `bounded`. Returns the
/// variable that reached 0, −1 if none did, −2 if nothing bounds the step.
Index WideSoftSet::advance(const WideVector& set_step, Index extra, const Wide& extra_step, bool bounded) {
  WideVector step(variables_.size()), terms(variables_.size());
  const auto add = [&](Index v, const Wide& by) {
    step[at(v)] += by;
    terms[at(v)] += abs(by);
    if (variables_[at(v)].query < 0) return;
    const Index pivot = pivot_[at(variables_[at(v)].query)];
    const Wide given = ratio(v) * by;
    step[at(pivot)] -= given;
    terms[at(pivot)] += abs(given);
  };
  for (std::size_t j = 0; j < set_.size(); ++j) add(set_[j], set_step[j]);
  if (extra >= 0) add(extra, extra_step);
  Wide most = bounded ? Wide(1) : Wide();
  Index blocking = -1;
  for (std::size_t v = 0; v < step.size(); ++v) {
    if (abs(step[v]) <= terms[v].shifted(kNegligible)) step[v] = Wide();
    if (variables_[v].equation || step[v].sign() >= 0) continue;
    Wide reach = abs(x_[v] / step[v]);
    if ((bounded || blocking >= 0) && !(reach < most)) continue;
    most = std::move(reach);
    blocking = static_cast<Index>(v);
  }
  if (!bounded && blocking < 0) return -2;
  for (std::size_t v = 0; v < step.size(); ++v) {
    if (!step[v].is_zero()) x_[v].add_product(most, step[v]);
  }
  return blocking;
}

/// Moves the set to the point where no member gains; members that reach 0 on the way leave. False: stopped, or rounding
/// made the set singular.
bool WideSoftSet::settle(const std::function<bool()>& stop) {
  for (;;) {
    if (stop()) return false;
    refresh();
    WideVector gain;
    for (const Index v : set_) {
      gain.push_back(missing(v));
      if (variables_[at(v)].query >= 0) gain.back() -= ratio(v) * missing(pivot_[at(variables_[at(v)].query)]);
    }
    const Index blocking = advance(solve_transposed(factor_, solve_lower(factor_, gain)), -1, Wide(), true);
    if (blocking < 0) break;
    leave(blocking);
    if (!refactor()) return false;
  }
  refresh();
  return true;
}

/// Lets a variable join the set. Where its row depends on the set, it joins instead of a variable that reaches 0 while
/// W stays, or does not. False: rounding made the set singular.
bool WideSoftSet::bring_in(Index v) {
  Split part = split(v);
  tried_[at(v)] = 1;
  if (!part.rest.is_zero()) {
    push(v, std::move(part));
    std::fill(tried_.begin(), tried_.end(), 0);
    return true;
  }
  const auto reduced_b = [&](Index u) {
    Wide b = variables_[at(u)].b;
    if (variables_[at(u)].query >= 0) b -= ratio(u) * variables_[at(pivot_[at(variables_[at(u)].query)])].b;
    return b;
  };
  Wide slope = reduced_b(v);  // W stays, so this is the gain
  for (std::size_t j = 0; j < set_.size(); ++j) slope -= part.r[j] * reduced_b(set_[j]);
  const Wide sign(slope.sign() < 0 ? -1 : 1), square = reduced_inner(v, v);
  WideVector step;
  for (std::size_t j = 0; j < set_.size(); ++j) {
    const Wide& r = part.r[j];
    const bool none = r * r * reduced_inner(set_[j], set_[j]) <= square.shifted(2 * kNegligible);
    step.push_back(none ? Wide() : -(sign * r));
  }
  const Index blocking = advance(step, v, sign, false);
  if (blocking == -2) return true;
  leave(blocking);
  if (blocking == v) return true;
  member_[at(v)] = 1;
  std::fill(tried_.begin(), tried_.end(), 0);
  return refactor();
}

/// The variable at 0 that gains the most; −1 if none does.
Index WideSoftSet::best_gain() const {
  Index best = -1;
  Wide most;
  for (Index v = 0; v < static_cast<Index>(variables_.size()); ++v) {
    const Variable& one = variables_[at(v)];
    if (member_[at(v)] != 0 || tried_[at(v)] != 0 || one.equation) continue;
    Wide gain = missing(v), terms = abs(one.b);
    if (one.row >= 0) terms += size_;
    if (one.query >= 0) {
      const Wide slack = ratio(v) * missing(pivot_[at(one.query)]);
      gain -= slack;
      terms += abs(slack);
    }
    if (gain.sign() <= 0 || gain <= terms.shifted(kMet) || !(gain > most)) continue;
    most = std::move(gain);
    best = v;
  }
  return best;
}

void WideSoftSet::write(RowMatrix& W, Eigen::VectorXd& dual) const {
  W.resize(rows_.d(), rows_.dz());
  for (Index k = 0; k < W.size(); ++k)
    W.data()[k] = abs(W_[at(k)]) <= terms_.shifted(kNoise) ? 0 : W_[at(k)].to_double();
  dual.setZero(rows_of_problem_);
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const Variable& one = variables_[v];
    if (one.source >= 0) dual(one.source) = x_[v].shifted(one.row >= 0 ? -rows_.exponent(one.row) : 0).to_double();
  }
}

}  // namespace attsvm::internal
