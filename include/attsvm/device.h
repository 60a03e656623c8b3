#pragma once

#include <cstdint>
#include <string>

namespace attsvm {

/// What was found when CUDA was looked for.
struct DeviceReport {
  bool found = false;        ///< a GPU that the kernels of this program run on
  std::string name{};        ///< of the GPU
  std::uint64_t memory = 0;  ///< of the GPU, in bytes
  std::string words{};       ///< name and memory, or in one line why there is none
};

/// Looks for a GPU at the first call. CUDA is loaded at run time: nothing needs to be installed where there is none.
const DeviceReport& device_report();

/// What this process has computed in the batches that a GPU took part in.
struct DeviceCounts {
  std::uint64_t on_gpu = 0;  ///< runs and problems that a GPU computed
  std::uint64_t on_cpu = 0;  ///< those of the same batches that the CPU did, because a GPU cannot or refused
};
DeviceCounts device_counts();  ///< since the process began

}  // namespace attsvm
