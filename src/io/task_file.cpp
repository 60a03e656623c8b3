#include <algorithm>

#include "attsvm/files.h"
#include "base/refuse.h"
#include "io/shards.h"
#include "task/task_fields.h"

namespace attsvm {

using namespace internal;

AttentionTask load_task(const std::string& path, Threads& threads) {
  if (const std::string manifest = manifest_of(path); !manifest.empty()) {
    const Manifest shards = read_manifest(manifest);
    return load_shards(shards, 0, shards.shards.size(), threads);
  }
  const NpzFile file(path);
  TaskArrays arrays;
  for (const std::string& name : file.names()) {
    const auto fields = task_fields();
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const TaskField& f) { return f.name == name; });
    if (field != fields.end()) {
      arrays.*field->member = file.read(name, threads);
    } else if (!name.starts_with("x_")) {
      if (file.has("row_query") || file.has("dual"))
        refuse("{}: array '{}' does not belong to a task; this looks like a solution file", path, name);
      if (file.has("W"))
        refuse("{}: array '{}' does not belong to a task; this looks like a run of attsvm train", path, name);
      std::string known;
      for (const TaskField& one : fields) known += fmt::format(" {}", one.name);
      refuse("{}: unknown array '{}'; a task has{}; names of your own arrays must start with x_", path, name, known);
    }
  }
  return with_place(path, [&] { return AttentionTask(std::move(arrays)); });
}

NamedArrays task_arrays(const AttentionTask& task) {
  NamedArrays arrays;
  for (const TaskField& field : task_fields()) {
    const Array& array = task.arrays().*field.member;
    if (array.given()) arrays.emplace_back(field.name, array);
  }
  return arrays;
}

void save_task(const std::string& path, const AttentionTask& task, const std::map<std::string, Array>& extras,
               bool replace) {
  NamedArrays arrays = task_arrays(task);
  arrays.insert(arrays.end(), extras.begin(), extras.end());
  write_npz(path, arrays, replace);
}

}  // namespace attsvm
