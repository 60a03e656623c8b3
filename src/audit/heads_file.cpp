#include <algorithm>

#include "audit/head_fields.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

HeadSet load_heads(const std::string& path, Threads& threads) {
  const NpzFile file(path);
  HeadArrays arrays;
  const auto fields = head_fields();
  for (const std::string& name : file.names()) {
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const HeadField& f) { return f.name == name; });
    if (field != fields.end()) {
      arrays.*field->member = file.read(name, threads);
    } else if (!name.starts_with("x_")) {
      std::string known;
      for (const HeadField& one : fields) known += fmt::format(" {}", one.name);
      refuse("{}: unknown array '{}'; a file of heads has{}; names of your own arrays must start with x_", path, name,
             known);
    }
  }
  return with_place(path, [&] { return HeadSet(std::move(arrays)); });
}

NamedArrays head_arrays(const HeadSet& heads) {
  NamedArrays arrays;
  for (const HeadField& field : head_fields()) {
    const Array& array = heads.arrays().*field.member;
    if (array.given()) arrays.emplace_back(field.name, array);
  }
  return arrays;
}

}  // namespace attsvm
