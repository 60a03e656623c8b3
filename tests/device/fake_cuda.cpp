// A driver of a card that there is not: a libcuda.so.1 whose kernels are those of src/device, run on the host. With it,
// tests without a GPU go through all that the host does for one. Its memory is small, and nothing is asynchronous.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/product_lane.h"
#include "device/svm.h"

namespace {

using namespace attsvm::internal::device;

constexpr std::size_t kMemory = 4 << 20;
constexpr int kOutOfMemory = 2, kNotFound = 500;
constexpr int kSharedMemory = 97;  // an attribute; of the others only the compute capability is asked for
constexpr int kLanes = 64;         // queries of a tile

std::mutex room;
std::map<std::uint64_t, std::size_t> taken;

std::size_t left() {
  std::size_t sum = 0;
  for (const auto& [at, bytes] : taken) sum += bytes;
  return kMemory - sum;
}

/// The parameters of a kernel that trains.
struct Call {
  LaneArrays arrays;
  long long runs;
  LaneRule rule;
  const StepSize* steps;
  int count;
  double number;
  AnySizes sizes;
  EntryRule entries;
};

double* part(const double* array, long long tile, int size, int lanes) {
  return array == nullptr ? nullptr : const_cast<double*>(array) + tile * size * lanes;
}

RunArray run_array(const WholeArrays& arrays, long long tile, int rows, int size, int fit, int slot) {
  const auto at = [&](double* array, int count) {
    return array == nullptr ? nullptr : part(array, tile, count, fit) + slot;
  };
  return {at(arrays.theta, size),
          at(arrays.change, size),
          at(arrays.squares, rows),
          at(arrays.mean, size),
          at(arrays.square, size),
          at(arrays.block, size),
          fit};
}

template <class Sizes>
bool move(std::vector<QueryLane<Sizes>>& lanes, const Call& call, int k) {
  const double square = lanes[0].square();
  for (auto& lane : lanes) lane.move(call.rule, square, call.steps[k].size);
  return square > 0;
}
template <class Sizes, bool kWhole>
bool move(std::vector<ProductLane<Sizes, kWhole>>& lanes, const Call& call, int k) {
  const double K = lanes[0].square_K(), Q = lanes[0].square_Q();
  for (auto& lane : lanes) {
    if constexpr (kWhole) {
      lane.move(call.entries, call.steps[k]);
    } else {
      lane.move(call.rule, K, Q, call.steps[k].size);
    }
  }
  const bool moves = kWhole && (call.entries.decay != 0 || (remembers(call.entries) && call.number + k > 0));
  return K > 0 || Q > 0 || moves;
}

/// One run, as the lanes of its block take it. `make` makes the lane of a query.
template <class Lane, class Make>
void take_steps(const Call& call, const Board& board, long long tile, int first, const Make& make) {
  const int n = call.sizes.n, T = call.sizes.T, d = call.sizes.d, r = call.sizes.r;
  std::vector<Lane> lanes;
  for (int i = first; i < first + n; ++i) {
    Lane lane = make(i);
    double* scratch = part(call.arrays.scratch, tile, T + d + r, kLanes) + i;
    lane.x = {part(call.arrays.X, tile, T * d, kLanes) + i, kLanes};
    lane.a = {scratch, kLanes};
    if (r > 0) {
      lane.u = {scratch + T * kLanes, kLanes};
      lane.change = {scratch + (T + d) * kLanes, kLanes};
    } else {
      lane.u = {part(call.arrays.reach, tile, d, kLanes) + i, kLanes};
      lane.change = {scratch + T * kLanes, kLanes};
    }
    lane.seen = static_cast<int>(part(call.arrays.visible, tile, 1, kLanes)[i]);
    lanes.push_back(lane);
  }
  double* rest = part(call.arrays.rest, tile, 1, kLanes);
  for (int k = 0;; ++k) {
    for (Lane& lane : lanes) lane.look(call.rule);
    for (Lane& lane : lanes) lane.weigh(call.rule);
    for (Lane& lane : lanes) lane.spread();
    if (k == call.count) break;
    const bool moved = move(lanes, call, k);
    for (int i = first; i < first + n; ++i) {
      if (!moved && rest[i] < 0) rest[i] = call.number + k;
    }
  }
  for (int i = first; i < first + n; ++i) {
    part(call.arrays.f, tile, 1, kLanes)[i] = lanes[static_cast<std::size_t>(i - first)].f();
    part(call.arrays.c, tile, 1, kLanes)[i] = board.c[i];
    part(call.arrays.top, tile, 1, kLanes)[i] = lanes[static_cast<std::size_t>(i - first)].top();
  }
}

template <class Lane>
void run_all(const Call& call) {
  const int n = call.sizes.n, T = call.sizes.T, d = call.sizes.d, r = call.sizes.r, dz = call.sizes.dz;
  const int fit = kLanes / n, width = r > 0 ? r : d;
  std::array<double, kLanes> exponent{}, c{}, sum{};
  const LaneArrays& arrays = call.arrays;
  for (long long run = 0; run < call.runs; ++run) {
    const long long tile = run / fit;
    const int slot = static_cast<int>(run % fit);
    const Board board{part(arrays.g, tile, d, kLanes),
                      exponent.data(),
                      c.data(),
                      sum.data(),
                      part(arrays.gamma, tile, T, kLanes),
                      part(arrays.gram, tile, n, kLanes),
                      part(arrays.added, tile, width, kLanes),
                      kLanes,
                      part(arrays.reach, tile, width, kLanes),
                      part(arrays.m, tile, r, kLanes),
                      part(arrays.Z, tile, dz, kLanes)};
    take_steps<Lane>(call, board, tile, slot * n, [&](int lane) {
      if constexpr (std::is_same_v<Lane, QueryLane<AnySizes>>) {
        return Lane(call.sizes, board, lane, slot * n);
      } else {
        return Lane(call.sizes, board, lane, slot * n, run_array(arrays.K, tile, d, d * r, fit, slot),
                    run_array(arrays.Q, tile, dz, dz * r, fit, slot));
      }
    });
  }
}

template <class Value>
Value value(void** at, int k) {
  return *static_cast<Value*>(at[k]);
}

/// The parameters that a launch hands over, and its blocks and their bytes of shared memory.
using Kernel = void (*)(void** at, unsigned blocks, unsigned shared);

template <class Lane>
void train(void** at, unsigned, unsigned) {
  run_all<Lane>({value<LaneArrays>(at, 0), value<long long>(at, 1), value<LaneRule>(at, 2),
                 value<const StepSize*>(at, 3), value<int>(at, 4), value<double>(at, 5), value<AnySizes>(at, 6),
                 value<EntryRule>(at, 7)});
}

template <int kRounds>
void solve(void** at, unsigned blocks, unsigned shared) {
  std::vector<double> memory(shared / sizeof(double), std::nan(""));
  for (unsigned k = 0; k < blocks; ++k) solve_one<kRounds>(LoopTeam(), value<SvmBatch>(at, 0), k, memory.data());
}

const std::map<std::string, Kernel> kKernels{{"run_W_any", train<QueryLane<AnySizes>>},
                                             {"run_KQ_any", train<ProductLane<AnySizes, false>>},
                                             {"run_entries_any", train<ProductLane<AnySizes, true>>},
                                             {"solve_svms_1", solve<1>},
                                             {"solve_svms_2", solve<2>},
                                             {"solve_svms_3", solve<3>},
                                             {"solve_svms_4", solve<4>}};

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetName(char* name, int size, int) {
  return std::strncpy(name, "a card of the tests", static_cast<std::size_t>(size)), 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = kMemory, 0; }
int cuDeviceGetAttribute(int* value, int which, int) { return *value = which == kSharedMemory ? 160 << 10 : 8, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = nullptr, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  const std::lock_guard lock(room);
  return *free = left(), *all = kMemory, 0;
}
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  const std::lock_guard lock(room);
  if (bytes > left()) return kOutOfMemory;
  *address = reinterpret_cast<std::uint64_t>(std::malloc(bytes));
  std::memset(reinterpret_cast<void*>(*address), 0xAB, bytes);  // nothing may rely on what was there before
  return taken[*address] = bytes, 0;
}
int cuMemFree_v2(std::uint64_t address) {
  const std::lock_guard lock(room);
  return taken.erase(address), std::free(reinterpret_cast<void*>(address)), 0;
}
int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void*) {
  return cuMemcpyHtoD_v2(to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  return cuMemcpyDtoH_v2(to, from, bytes);
}
int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t bytes, void*) {
  return std::memset(reinterpret_cast<void*>(to), value, bytes), 0;
}
int cuMemAllocHost_v2(void** data, std::size_t bytes) { return *data = std::malloc(bytes), 0; }
int cuMemFreeHost(void* data) { return std::free(data), 0; }
int cuStreamCreate(void** stream, unsigned) { return *stream = nullptr, 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuModuleLoadData(void** module, const void*) { return *module = nullptr, 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  const auto found = kKernels.find(name);
  if (found == kKernels.end()) return kNotFound;
  *function = reinterpret_cast<void*>(found->second);
  return 0;
}
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                   void*, void** at, void**) {
  return reinterpret_cast<Kernel>(function)(at, blocks, shared), 0;
}
int cuGetErrorString(int error, const char** text) {
  return *text = error == kOutOfMemory ? "out of memory" : "an error of the tests", 0;
}
}
