#include "task_json.h"

#include <algorithm>
#include <utility>

#include "base/refuse.h"
#include "task/task_fields.h"

namespace attsvm::internal {
namespace {

bool has_whole_numbers(std::string_view name) {
  return name == "offsets" || name == "query_token" || name == "sequence" || name == "visible" || name == "select";
}

std::vector<Index> shape_of(const Json& array) { return array.at("shape").get<std::vector<Index>>(); }

Array array_from(std::string_view name, const Json& given, const double* numbers) {
  auto shape = shape_of(given);
  Index count = 1;
  for (const Index size : shape) count *= size;  // packed() has compared it with the numbers that there are
  const double* first = numbers + given.at("from").get<Index>();
  if (name == "select" && shape.size() == 2)
    return Array::own(std::vector<bool>(first, first + count), std::move(shape));
  if (has_whole_numbers(name)) return Array::own(std::vector<Index>(first, first + count), std::move(shape));
  return Array::own(std::vector<double>(first, first + count), std::move(shape));
}

}  // namespace

RowMatrix Request::matrix(const Json& array) const {
  const auto shape = shape_of(array);
  return ConstRows(numbers + array.at("from").get<Index>(), static_cast<Eigen::Index>(shape.at(0)),
                   static_cast<Eigen::Index>(shape.at(1)));
}

AttentionTask Request::task() const {
  TaskArrays task;
  const Json& arrays = at("task");
  const auto fields = task_fields();
  for (auto array = arrays.begin(); array != arrays.end(); ++array) {
    const auto known = [&](const TaskField& field) { return field.name == array.key(); };
    if (std::none_of(fields.begin(), fields.end(), known)) refuse("unknown array '{}'", array.key());
  }
  for (const TaskField& field : fields) {
    if (const auto found = arrays.find(field.name); found != arrays.end())
      task.*field.member = array_from(field.name, *found, numbers);
  }
  return AttentionTask(std::move(task));
}

Json to_json(const AttentionTask& task) {
  Json arrays = Json::object();
  for (const TaskField& field : task_fields()) {
    const Array& array = task.arrays().*field.member;
    if (!array.given()) continue;
    const Array numbers = to_f64(array, field.name);
    const auto span = f64_span(numbers);
    arrays[std::string(field.name)] = {{"shape", array.shape}, {"data", std::vector<double>(span.begin(), span.end())}};
  }
  return arrays;
}

Json to_json(const RowMatrix& matrix) {
  Json rows = Json::array();
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    Json row = Json::array();
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) row.push_back(matrix(i, j));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace attsvm::internal
