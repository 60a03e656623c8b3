#include <cstring>

#include "attsvm/files.h"
#include "io/run_contents.h"

namespace attsvm {

using namespace internal;

namespace {

/// Collects the arrays that a file would hold.
struct Collector {
  NamedArrays arrays{};

  void add(const std::string& name, Array array) { arrays.emplace_back(name, std::move(array)); }

  void add(const std::string& name, const std::vector<Index>& shape, Index pieces,
           const std::function<Bytes(Index)>& piece) {
    std::vector<double> numbers;
    for (Index k = 0; k < pieces; ++k) {
      const Bytes bytes = piece(k);
      const std::size_t before = numbers.size();
      numbers.resize(before + bytes.size() / sizeof(double));
      std::memcpy(numbers.data() + before, bytes.data(), bytes.size());
    }
    add(name, Array::own(std::move(numbers), shape));
  }
};

}  // namespace

NamedArrays run_arrays(const AttentionTask& task, const TrainSettings& settings, const TrainedRun& run,
                       const AttentionMap& map, Threads& threads) {
  std::vector<double> frames;
  for (const Record& record : run.records) append_frame(record, frames);
  const auto count = static_cast<Index>(run.records.size());
  const Index size = count > 0 ? static_cast<Index>(frames.size()) / count : 0;
  Collector out;
  write_run(
      {SharedTask(task), settings, run, map, threads}, count, [&](Index k) { return frames.data() + k * size; }, out);
  return std::move(out.arrays);
}

}  // namespace attsvm
