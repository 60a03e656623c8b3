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

}  // namespace attsvm
