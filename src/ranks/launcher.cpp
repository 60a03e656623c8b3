#include "ranks/launcher.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/refuse.h"
#include "ranks/ranks.h"

namespace attsvm::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugin = "attsvm_mpi.so";

struct Launcher {
  const char *rank, *count;
};

// Open MPI's mpirun; MPICH's, Intel's and srun --mpi=pmi2; srun --mpi=pmix.
constexpr std::array kLaunchers{Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                Launcher{"PMI_RANK", "PMI_SIZE"}, Launcher{"PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};

fs::path this_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

/// FNV-1a of the program's file: ranks whose numbers may differ must not work together.
std::string program_mark() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::vector<std::uint64_t> words(1 << 16);
  while (file) {
    file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof words[0]));
    const auto whole = static_cast<std::size_t>(file.gcount()) / sizeof words[0];
    for (std::size_t k = 0; k < whole; ++k) hash = (hash ^ words[k]) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

OpenWire load_plugin() {
  const fs::path folder = this_program().parent_path();
  std::string problem;
  for (const fs::path& path : {folder / kPlugin, folder / ATTSVM_MPI_FROM_PROGRAM / kPlugin}) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    if (void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      if (void* open = dlsym(plugin, kOpenWire)) return reinterpret_cast<OpenWire>(open);
    }
    problem = dlerror();
  }
  const int count = launched().count;
  if (problem.empty())
    refuse("{} ranks were started, but this attsvm was built without MPI ({} is not beside it); start one", count,
           kPlugin);
  refuse("{} ranks were started, but the MPI plug-in cannot be loaded: {}", count, problem);
}

}  // namespace

Launched launched() {
  for (const Launcher& launcher : kLaunchers) {
    const char *rank = std::getenv(launcher.rank), *count = std::getenv(launcher.count);
    if (rank != nullptr && count != nullptr) return {std::atoi(rank), std::max(1, std::atoi(count))};
  }
  return {};
}

std::unique_ptr<Wire> join_launched(std::string_view command) {
  const Launched place = launched();
  if (place.count == 1) return nullptr;
  std::string problem;
  std::unique_ptr<Wire> wire(load_plugin()(problem));
  if (!wire) refuse("{} ranks were started, but {}", place.count, problem);
  if (wire->count() != place.count)
    refuse("{} ranks were started, but MPI sees {}: attsvm was built with another MPI than the launcher's", place.count,
           wire->count());
  require_same_on_all(*wire, program_mark(), "runs another build of attsvm; install the same on every machine");
  require_same_on_all(*wire, command, "was given another command than rank 0; give all the same");
  return wire;
}

}  // namespace attsvm::internal
