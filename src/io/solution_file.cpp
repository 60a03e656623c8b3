#include <algorithm>

#include "attsvm/files.h"
#include "base/refuse.h"
#include "io/claim_part.h"
#include "task/parts.h"

namespace attsvm {

using namespace internal;

namespace {

/// When a file has an array. Files are read part by part, in this order.
enum class Part : std::uint8_t {
  matrix,    // always
  factors,   // all of them or none
  question,  // may be left out, and may stand beside W alone
  status,    // as claims; read before them
  claims,    // all of them, or none if the file is another program's answer
  soft,      // both of them or none; beside claims only
};

/// Calls visit(name, part, member) for every array of a solution file, in the order of the file.
template <class Visit>
void for_each_array(Visit&& visit) {
  using S = StoredSolution;
  visit("W", Part::matrix, &S::W);
  visit("row_query", Part::claims, &S::row_query);
  visit("row_keep", Part::claims, &S::row_keep);
  visit("row_drop", Part::claims, &S::row_drop);
  visit("row_equal", Part::claims, &S::row_equal);
  visit("rhs", Part::claims, &S::rhs);
  visit("slack", Part::claims, &S::slack);
  visit("dual", Part::claims, &S::dual);
  visit("status", Part::status, &S::status);
  visit("norm", Part::question, &S::norm);
  visit("problem", Part::question, &S::problem);
  visit("tolerance", Part::claims, &S::tolerance);
  visit("objective", Part::claims, &S::objective);
  visit("dual_objective", Part::claims, &S::dual_objective);
  visit("select", Part::question, &S::select);
  visit("relax", Part::question, &S::relax);
  visit("penalty", Part::soft, &S::penalty);
  visit("xi", Part::soft, &S::xi);
  visit("K", Part::factors, &S::K);
  visit("Q", Part::factors, &S::Q);
}

Array to_array(const RowMatrix& matrix) { return Array::own(matrix); }
Array to_array(const std::string& text) { return Array::text(text); }
Array to_array(double number) { return Array::number(number); }
Array to_array(const Array& array) { return array; }
template <class T>
Array to_array(const std::vector<T>& items) {
  return Array::own(items, {static_cast<Index>(items.size())});
}

/// A graph problem has no selection and no relaxed queries.
template <class T>
bool is_left_out(const T&) {
  return false;
}
bool is_left_out(const Array& array) { return !array.given(); }
bool is_left_out(const std::vector<bool>& flags) { return flags.empty(); }

std::vector<double> to_doubles(const Array& array) {
  const Array numbers = to_f64(array);
  return {f64_span(numbers).begin(), f64_span(numbers).end()};
}

void read(const Array& array, const std::string& name, RowMatrix& to) {
  if (array.rank() != 2 || array.scalar == Scalar::character)
    refuse("{} has shape {}; must have two sizes", name, shape_text(array.shape));
  const Array numbers = to_f64(array);
  to = ConstRows(f64_span(numbers).data(), numbers.shape[0], numbers.shape[1]);
}

void read(const Array& array, const std::string& name, std::vector<double>& to) {
  if (array.rank() != 1 || array.scalar == Scalar::character) refuse("{} must be a list of numbers", name);
  to = to_doubles(array);
}

void read(const Array& array, const std::string& name, std::vector<bool>& to) {
  if (array.scalar != Scalar::boolean || array.rank() != 1) refuse("{} must be a list of bool", name);
  const auto numbers = to_doubles(array);
  to.assign(numbers.begin(), numbers.end());
}

void read(const Array& array, const std::string& name, double& to) {
  if (array.size() != 1 || array.scalar == Scalar::character) refuse("{} must be a single number", name);
  to = to_doubles(array).front();
}

void read(const Array& array, const std::string& name, std::vector<Index>& to) { to = to_indices(array, name); }
void read(const Array& array, const std::string& name, std::string& to) { to = to_text(array, name); }
void read(const Array& array, const std::string&, Array& to) { to = to_native(array); }

}  // namespace

NamedArrays solution_arrays(const StoredSolution& solution) {
  NamedArrays arrays;
  for_each_array([&](const char* name, Part part, auto member) {
    if (part != Part::matrix && (solution.w_only || (part == Part::factors && !solution.has_factors))) return;
    if (part == Part::soft && !solution.is_soft()) return;
    if (part == Part::question && is_left_out(solution.*member)) return;
    arrays.emplace_back(name, to_array(solution.*member));
  });
  return arrays;
}

void save_solution(const std::string& path, const StoredSolution& solution, bool replace) {
  write_npz(path, solution_arrays(solution), replace);
}

StoredSolution solution_from(const NamedArrays& arrays) {
  const auto find = [&](std::string_view name) {
    return std::find_if(arrays.begin(), arrays.end(), [&](const auto& one) { return one.first == name; });
  };
  StoredSolution solution;
  solution.w_only = true;
  bool soft = false;
  for_each_array([&](std::string_view name, Part part, auto) {
    if (find(name) == arrays.end() || name == "tolerance") return;  // a tolerance alone claims nothing
    if (part == Part::factors) solution.has_factors = true;
    if (part == Part::soft) soft = true;
    if (part == Part::status || part == Part::claims) solution.w_only = false;
  });
  if (soft && solution.w_only) refuse("penalty and xi stand beside W alone; a soft margin needs the other arrays too");
  for (const Part now : {Part::matrix, Part::factors, Part::question, Part::status, Part::claims, Part::soft}) {
    for_each_array([&](const char* name, Part part, auto member) {
      if (part != now || (part == Part::factors && !solution.has_factors) || (part == Part::soft && !soft)) return;
      if (solution.w_only && (part == Part::status || part == Part::claims)) return;
      if (const auto found = find(name); found != arrays.end()) {
        read(found->second, name, solution.*member);
      } else if (part != Part::question) {
        refuse("{}: there is no such array", name);
      }
    });
  }
  return solution;
}

namespace {

NamedArrays read_arrays(const std::string& path, Threads& threads) {
  const NpzFile file(path);
  NamedArrays arrays;
  if (file.has("record_W") || file.has("record_step")) {
    refuse("{}: is a run (it has record_ arrays), not a solution; `check` judges runs", path);
  }
  for (const std::string& name : file.names()) {
    for_each_array([&](std::string_view known, Part, auto) {
      if (name == known) arrays.emplace_back(name, file.read(name, threads));
    });
  }
  return arrays;
}

/// The rows of a (q,T) mask that belong to a part, without the columns beyond its longest sequence, unless they hold
/// something: verify() then refuses the mask.
Array mask_of_part(const Array& mask, const SharedQueries& part) {
  Array rows = rows_of(mask, part.first, part.first + part.task->queries());
  const Index columns = part.task->longest();
  for (Index i = 0; i < rows.shape[0]; ++i) {
    const std::byte* beyond = rows.data + i * rows.shape[1];
    if (std::any_of(beyond + columns, beyond + rows.shape[1], [](std::byte flag) { return flag != std::byte{0}; }))
      return rows;
  }
  return with_columns(rows, columns);
}

}  // namespace

StoredSolution load_solution(const std::string& path, Threads& threads) {
  const NamedArrays arrays = read_arrays(path, threads);
  return with_place(path, [&] { return solution_from(arrays); });
}

SharedClaim internal::load_claim(const std::string& path, const SharedQueries& part, Threads& threads) {
  return with_place(path, [&] {
    NamedArrays arrays = read_arrays(path, threads);
    SharedClaim shared{.part = part.task, .claim = {}, .place = {.first_query = part.first}};
    std::vector<Index> row_query;
    for (auto& [name, array] : arrays) {
      array = to_native(array);
      if (name == "row_query") row_query = to_indices(array, name);
      if (name == "rhs") shared.rhs = to_f64(array, name);
      if (name == "dual") shared.dual = to_f64(array, name);
    }
    for (const char* name : {"row_query", "row_keep", "row_drop", "row_equal", "rhs", "slack", "dual"}) {
      const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& one) { return one.first == name; });
      if (found != arrays.end()) shared.stated.emplace_back(name, static_cast<std::size_t>(found->second.size()));
    }
    const auto rows = static_cast<Index>(row_query.size());
    const auto row_of = [&](Index query) {
      if (query == 0) return Index{0};
      if (query == part.queries) return rows;
      return static_cast<Index>(std::lower_bound(row_query.begin(), row_query.end(), query) - row_query.begin());
    };
    const Index begin = row_of(part.first), end = std::max(begin, row_of(part.first + part.task->queries()));
    shared.place.first_row = static_cast<std::size_t>(begin);
    for (auto& [name, array] : arrays) {
      Part kind = Part::matrix;
      for_each_array([&, own = name](std::string_view known, Part of, auto) {
        if (known == own) kind = of;
      });
      if (name == "row_query") {
        for (Index& query : row_query) query -= part.first;
        array = rows == 0
                    ? array
                    : Array::own(std::vector<Index>(row_query.begin() + begin, row_query.begin() + end), {end - begin});
      } else if (kind == Part::claims && array.rank() == 1 && array.shape[0] == rows && rows > 0) {
        array = rows_of(array, begin, end);
      } else if (name == "relax" && array.shape == std::vector<Index>{part.queries}) {
        array = rows_of(array, part.first, part.first + part.task->queries());
      } else if (name == "select" && array.scalar == Scalar::boolean && array.rank() == 2 &&
                 array.shape[0] == part.queries && array.shape[1] >= part.task->longest()) {
        array = mask_of_part(array, part);
      }
    }
    shared.claim = completed(*part.task, solution_from(arrays));
    return shared;
  });
}

}  // namespace attsvm
