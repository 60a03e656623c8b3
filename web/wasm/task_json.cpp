#include "task_json.h"

#include <utility>

#include "base/refuse.h"
#include "task/task_fields.h"

namespace attsvm::internal {
namespace {

bool has_whole_numbers(std::string_view name) {
  return name == "offsets" || name == "query_token" || name == "sequence" || name == "visible" || name == "select";
}

Array array_from(std::string_view name, const Json& given) {
  auto shape = given.at("shape").get<std::vector<Index>>();
  Index count = 1;
  for (const Index size : shape) count *= size;
  if (count != static_cast<Index>(given.at("data").size())) refuse("{} has another size than its shape says", name);
  if (name == "select" && shape.size() == 2) {
    std::vector<bool> flags;
    for (const Json& flag : given.at("data")) flags.push_back(flag.get<int>() != 0);
    return Array::own(flags, std::move(shape));
  }
  if (has_whole_numbers(name)) return Array::own(given.at("data").get<std::vector<Index>>(), std::move(shape));
  return Array::own(given.at("data").get<std::vector<double>>(), std::move(shape));
}

}  // namespace

AttentionTask task_from(const Json& arrays) {
  TaskArrays task;
  for (const TaskField& field : task_fields()) {
    if (const auto found = arrays.find(field.name); found != arrays.end())
      task.*field.member = array_from(field.name, *found);
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

RowMatrix matrix_from(const Json& rows) {
  const auto height = static_cast<Eigen::Index>(rows.size());
  RowMatrix matrix(height, height == 0 ? 0 : static_cast<Eigen::Index>(rows[0].size()));
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    const Json& row = rows[static_cast<std::size_t>(i)];
    if (static_cast<Eigen::Index>(row.size()) != matrix.cols()) refuse("row {} of a matrix has another length", i);
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) matrix(i, j) = row[static_cast<std::size_t>(j)].get<double>();
  }
  return matrix;
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
