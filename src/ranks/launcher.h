#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ranks/wire.h"

namespace attsvm::internal {

/// Where a launcher such as mpirun or srun put this process.
struct Launched {
  int rank = 0, count = 1;
};

/// What the launcher's environment variables say; one rank where there are none.
Launched launched();

/// The wire to the other ranks; null for a process that is alone. MPI is in a plug-in that only such processes load, so
/// the program starts where MPI is not installed. InputError if the plug-in is missing or does not start, if it belongs
/// to another MPI than the launcher, if ranks run different programs, or if their `command` is not the same.
std::unique_ptr<Wire> join_launched(std::string_view command);

}  // namespace attsvm::internal
