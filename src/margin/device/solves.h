#pragma once

#include <span>
#include <vector>

#include "attsvm/margin.h"
#include "device/cuda.h"
#include "margin/pursuit.h"

namespace attsvm::internal {

/// MarginSolution::method of an answer that the GPU found.
inline constexpr std::string_view kDeviceMethod = "block pivoting on a GPU";
/// The largest gap with which such an answer is taken.
inline constexpr double kDeviceGap = 1e-12;

/// The GPU for problems with these settings, or null: if the threads are for the CPU alone, there is none, or its
/// kernel does not know what is asked.
Cuda* device_for(const SolveSettings& settings, const Threads& threads);

/// Whether a batch takes long enough on a CPU for Device::automatic to start the GPU, by the sum of its squared numbers
/// of rows.
bool worth_a_device(double squared_rows);

/// Solves on the GPU those problems that its kernel takes, and certifies the answers; true for each problem that is
/// solved. What the solutions of the others hold means nothing.
std::vector<std::uint8_t> solve_on_device(Cuda& cuda, std::span<const MarginProblem> problems,
                                          const SolveSettings& settings, Threads& threads,
                                          std::span<MarginSolution> solutions);

/// Certifies an answer of the kernel. False: there is none, or it proves too little.
bool take_answer(const MarginProblem& problem, const SolveSettings& settings, const double* answer,
                 SolverMemory& memory, MarginSolution& solution);

}  // namespace attsvm::internal
