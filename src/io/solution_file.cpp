#include <algorithm>
#include <array>

#include "attsvm/files.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

namespace {

// Arrays of a full solution, and arrays that a file with only W may hold too.
constexpr std::array<std::string_view, 10> kClaims{"status", "row_query", "row_keep", "row_drop",  "row_equal",
                                                   "rhs",    "slack",     "dual",     "objective", "dual_objective"};
constexpr std::array<std::string_view, 8> kOthers{"W", "K", "Q", "norm", "problem", "select", "relax", "tolerance"};

bool is_known(std::string_view name) {
  return std::find(kClaims.begin(), kClaims.end(), name) != kClaims.end() ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

template <class T>
Array list(const std::vector<T>& items) {
  return Array::own(items, {static_cast<Index>(items.size())});
}

std::vector<double> to_doubles(const Array& array) {
  const Array numbers = to_f64(array);
  return {f64_span(numbers).begin(), f64_span(numbers).end()};
}

std::vector<bool> to_flags(const Array& array, const std::string& name) {
  if (array.scalar != Scalar::boolean || array.rank() != 1) refuse("{} must be a list of bool", name);
  const auto numbers = to_doubles(array);
  return {numbers.begin(), numbers.end()};
}

double to_number(const Array& array, const std::string& name) {
  if (array.size() != 1 || array.scalar == Scalar::character) refuse("{} must be a single number", name);
  return to_doubles(array).front();
}

}  // namespace

NamedArrays solution_arrays(const StoredSolution& solution) {
  if (solution.w_only) return {{"W", Array::own(solution.W)}};
  NamedArrays arrays{{"W", Array::own(solution.W)},
                     {"row_query", list(solution.row_query)},
                     {"row_keep", list(solution.row_keep)},
                     {"row_drop", list(solution.row_drop)},
                     {"row_equal", list(solution.row_equal)},
                     {"rhs", list(solution.rhs)},
                     {"slack", list(solution.slack)},
                     {"dual", list(solution.dual)},
                     {"status", Array::text(solution.status)},
                     {"norm", Array::text(solution.norm)},
                     {"problem", Array::text(solution.problem)},
                     {"tolerance", Array::number(solution.tolerance)},
                     {"objective", Array::number(solution.objective)},
                     {"dual_objective", Array::number(solution.dual_objective)},
                     {"select", solution.select},
                     {"relax", list(solution.relax)}};
  if (solution.has_factors) {
    arrays.emplace_back("K", Array::own(solution.K));
    arrays.emplace_back("Q", Array::own(solution.Q));
  }
  return arrays;
}

void save_solution(const std::string& path, const StoredSolution& solution, bool replace) {
  write_npz(path, solution_arrays(solution), replace);
}

StoredSolution solution_from(const NamedArrays& arrays) {
  const auto find = [&](const std::string& name) {
    return std::find_if(arrays.begin(), arrays.end(), [&](const auto& one) { return one.first == name; });
  };
  const auto has = [&](const std::string& name) { return find(name) != arrays.end(); };
  const auto with = [&](const std::string& name, auto&& use) {
    if (!has(name)) refuse("{}: there is no such array", name);
    return use(find(name)->second, name);
  };
  const auto indices = [](const Array& array, const std::string& name) { return to_indices(array, name); };
  const auto doubles = [](const Array& array, const std::string& name) {
    if (array.rank() != 1 || array.scalar == Scalar::character) refuse("{} must be a list of numbers", name);
    return to_doubles(array);
  };
  const auto text = [](const Array& array, const std::string& name) { return to_text(array, name); };
  StoredSolution solution;
  const auto matrix = [](const Array& array, const std::string& name) -> RowMatrix {
    if (array.rank() != 2 || array.scalar == Scalar::character)
      refuse("{} has shape {}; must have two sizes", name, shape_text(array.shape));
    const Array numbers = to_f64(array);
    return ConstRows(f64_span(numbers).data(), numbers.shape[0], numbers.shape[1]);
  };
  solution.W = with("W", matrix);
  if (has("K") || has("Q")) {
    solution.K = with("K", matrix);
    solution.Q = with("Q", matrix);
    solution.has_factors = true;
  }
  solution.w_only = true;
  for (const std::string_view claim : kClaims) solution.w_only = solution.w_only && !has(std::string(claim));
  if (has("norm")) solution.norm = with("norm", text);
  if (has("problem")) solution.problem = with("problem", text);
  if (has("select")) {
    solution.select = with("select", [](const Array& array, const std::string&) { return to_native(array); });
  }
  if (has("relax")) solution.relax = with("relax", to_flags);
  if (solution.w_only) return solution;
  solution.status = with("status", text);
  solution.row_query = with("row_query", indices);
  solution.row_keep = with("row_keep", indices);
  solution.row_drop = with("row_drop", indices);
  solution.row_equal = with("row_equal", to_flags);
  solution.rhs = with("rhs", doubles);
  solution.slack = with("slack", doubles);
  solution.dual = with("dual", doubles);
  solution.tolerance = with("tolerance", to_number);
  solution.objective = with("objective", to_number);
  solution.dual_objective = with("dual_objective", to_number);
  return solution;
}

StoredSolution load_solution(const std::string& path, Threads& threads) {
  const NpzFile file(path);
  NamedArrays arrays;
  if (file.has("record_W") || file.has("record_step")) {
    refuse("{}: is a run (it has record_ arrays), not a solution; attsvm check --run judges it", path);
  }
  for (const std::string& name : file.names()) {
    if (is_known(name)) arrays.emplace_back(name, file.read(name, threads));
  }
  return with_place(path, [&] { return solution_from(arrays); });
}

}  // namespace attsvm
