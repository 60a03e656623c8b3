#include "device/cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace attsvm {

namespace internal {
namespace {

// The driver's interface, as far as it is used: numbers and names of CUDA's stable C interface.
using Address = std::uint64_t;
constexpr int kMajor = 75, kSharedMemory = 97;  // attributes of a device: compute capability, bytes a block may share
constexpr int kSharedBytes = 8;                 // the attribute of a kernel that permits more of them than 48 KB
constexpr unsigned kOwnPace = 1;                // a stream that does not wait for launches without a stream

}  // namespace

struct Cuda::Driver {
  void* library = nullptr;
  void* context = nullptr;
  std::vector<void*> modules;
  int shared_memory = 0;
  std::mutex names;
  std::map<std::string, void*> functions;

  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_at)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*use)(void*) = nullptr;
  int (*memory_info)(std::size_t*, std::size_t*) = nullptr;
  int (*allocate)(Address*, std::size_t) = nullptr;
  int (*release)(Address) = nullptr;
  int (*copy_in)(Address, const void*, std::size_t) = nullptr;
  int (*copy_out)(void*, Address, std::size_t) = nullptr;
  int (*load)(void**, const void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*start)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
               void**) = nullptr;
  int (*function_attribute)(void*, int, int) = nullptr;
  int (*synchronize)() = nullptr;
  int (*create_stream)(void**, unsigned) = nullptr;
  int (*destroy_stream)(void*) = nullptr;
  int (*synchronize_stream)(void*) = nullptr;
  int (*copy_in_later)(Address, const void*, std::size_t, void*) = nullptr;
  int (*copy_out_later)(void*, Address, std::size_t, void*) = nullptr;
  int (*set_bytes)(Address, unsigned char, std::size_t, void*) = nullptr;
  int (*pin)(void**, std::size_t) = nullptr;
  int (*unpin)(void*) = nullptr;
  int (*error_text)(int, const char**) = nullptr;

  /// Finds all functions; the name of one that is missing, or null.
  const char* bind() {
    const char* missing = nullptr;
    const auto find = [&](auto& pointer, const char* name) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, name));
      if (pointer == nullptr) missing = name;
    };
    find(init, "cuInit");
    find(device_count, "cuDeviceGetCount");
    find(device_at, "cuDeviceGet");
    find(device_name, "cuDeviceGetName");
    find(device_memory, "cuDeviceTotalMem_v2");
    find(device_attribute, "cuDeviceGetAttribute");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(use, "cuCtxSetCurrent");
    find(memory_info, "cuMemGetInfo_v2");
    find(allocate, "cuMemAlloc_v2");
    find(release, "cuMemFree_v2");
    find(copy_in, "cuMemcpyHtoD_v2");
    find(copy_out, "cuMemcpyDtoH_v2");
    find(load, "cuModuleLoadData");
    find(function, "cuModuleGetFunction");
    find(start, "cuLaunchKernel");
    find(function_attribute, "cuFuncSetAttribute");
    find(synchronize, "cuCtxSynchronize");
    find(create_stream, "cuStreamCreate");
    find(destroy_stream, "cuStreamDestroy_v2");
    find(synchronize_stream, "cuStreamSynchronize");
    find(copy_in_later, "cuMemcpyHtoDAsync_v2");
    find(copy_out_later, "cuMemcpyDtoHAsync_v2");
    find(set_bytes, "cuMemsetD8Async");
    find(pin, "cuMemAllocHost_v2");
    find(unpin, "cuMemFreeHost");
    find(error_text, "cuGetErrorString");
    return missing;
  }

  std::string words(int error) const {
    const char* text = nullptr;
    return error_text(error, &text) == 0 && text != nullptr ? text : fmt::format("error {}", error);
  }

  void check(int error, const char* what) const {
    if (error != 0) throw DeviceError(fmt::format("the GPU could not {}: {}", what, words(error)));
  }

  /// Every thread has a context of its own choice.
  void enter() const { check(use(context), "be used by this thread"); }

  void* named(const std::string& kernel) {
    const std::lock_guard lock(names);
    const auto [at, added] = functions.try_emplace(kernel, nullptr);
    for (std::size_t k = 0; k < modules.size() && added && at->second == nullptr; ++k) {
      if (function(&at->second, modules[k], kernel.c_str()) != 0) at->second = nullptr;
    }
    return at->second;
  }
};

/// The one search for a GPU, and what it found.
struct Search {
  DeviceReport report;
  Cuda* cuda = nullptr;  // never freed: the driver takes itself down when the process ends
  pid_t process = getpid();

  Search() {
    auto driver = std::make_unique<Cuda::Driver>();
    report.words = look(*driver);
    if (report.found) cuda = new Cuda(std::move(driver));
  }

  /// Opens the driver and fills `report`; one line in words.
  std::string look(Cuda::Driver& driver) {
    std::vector<KernelImage> images = built_kernels();
    std::erase(images, nullptr);
    if (images.empty()) return "none used: this attsvm was built without nvcc, so it has no kernels";
    driver.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver.library == nullptr) return "none: there is no CUDA driver (libcuda.so.1)";
    if (const char* missing = driver.bind()) return fmt::format("none used: the CUDA driver has no {}", missing);
    int count = 0, device = 0, major = 0;
    if (const int error = driver.init(0))
      return fmt::format("none used: the CUDA driver says: {}", driver.words(error));
    if (driver.device_count(&count) != 0 || count == 0) return "none: the CUDA driver sees no GPU";
    char name[128] = "";
    std::size_t memory = 0;
    driver.device_at(&device, 0);
    driver.device_name(name, sizeof name, device);
    driver.device_memory(&memory, device);
    driver.device_attribute(&major, kMajor, device);
    driver.device_attribute(&driver.shared_memory, kSharedMemory, device);
    report.name = name;
    report.memory = memory;
    if (major < 8) return fmt::format("none used: {} is older than what the kernels are made for (compute 8.0)", name);
    int error = driver.retain(&driver.context, device);
    if (error == 0) error = driver.use(driver.context);
    for (std::size_t k = 0; k < images.size() && error == 0; ++k)
      error = driver.load(&driver.modules.emplace_back(), images[k]);
    if (error != 0) return fmt::format("none used: {} says: {}", name, driver.words(error));
    report.found = true;
    return fmt::format("{}, {:.0f} GB", name, static_cast<double>(memory) / 1e9);
  }
};

namespace {

Search& search() {
  static Search found;
  return found;
}

}  // namespace

Cuda::Cuda(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}
Cuda::~Cuda() = default;

Cuda* Cuda::find() {
  Search& found = search();
  return found.process == getpid() ? found.cuda : nullptr;
}

std::size_t Cuda::free_memory() {
  std::size_t left = 0, all = 0;
  driver_->enter();
  driver_->check(driver_->memory_info(&left, &all), "tell its free memory");
  return left;
}

bool Cuda::has(const std::string& kernel) { return driver_->named(kernel) != nullptr; }

std::size_t Cuda::shared_memory() const { return static_cast<std::size_t>(driver_->shared_memory); }

void Cuda::launch(const std::string& kernel, unsigned blocks, unsigned threads, void** arguments, std::size_t shared,
                  const Stream* stream) {
  driver_->enter();
  void* function = driver_->named(kernel);
  if (function == nullptr) throw DeviceError(fmt::format("the GPU has no kernel {}", kernel));
  if (shared > 0) {
    driver_->check(driver_->function_attribute(function, kSharedBytes, static_cast<int>(shared)),
                   "share that much memory within a block");
  }
  driver_->check(driver_->start(function, blocks, 1, 1, threads, 1, 1, static_cast<unsigned>(shared),
                                stream != nullptr ? stream->handle() : nullptr, arguments, nullptr),
                 "start a kernel");
}

void Cuda::wait() {
  driver_->enter();
  driver_->check(driver_->synchronize(), "end its work");
}

Cuda::Stream::Stream(Cuda& cuda) : cuda_(&cuda) {
  cuda.driver_->enter();
  cuda.driver_->check(cuda.driver_->create_stream(&handle_, kOwnPace), "begin a stream");
}

Cuda::Stream::~Stream() {
  cuda_->driver_->use(cuda_->driver_->context);
  cuda_->driver_->synchronize_stream(handle_);  // its memory may be freed next
  cuda_->driver_->destroy_stream(handle_);
}

void Cuda::Stream::wait() const {
  cuda_->driver_->enter();
  cuda_->driver_->check(cuda_->driver_->synchronize_stream(handle_), "end its work");
}

Cuda::Pinned::Pinned(Cuda& cuda, std::size_t bytes) : cuda_(&cuda) {
  cuda.driver_->enter();
  cuda.driver_->check(cuda.driver_->pin(&data_, bytes), "reach that much of the host's memory");
}

Cuda::Pinned::~Pinned() {
  cuda_->driver_->use(cuda_->driver_->context);
  cuda_->driver_->unpin(data_);
}

Cuda::Room::Room(Cuda& cuda, std::size_t bytes) : cuda_(&cuda), bytes_(bytes) {
  if (bytes == 0) return;
  cuda.driver_->enter();
  cuda.driver_->check(cuda.driver_->allocate(&address_, bytes), "give memory");
}

Cuda::Room::Room(Room&& other) noexcept
    : cuda_(other.cuda_), address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}

Cuda::Room& Cuda::Room::operator=(Room&& other) noexcept {
  std::swap(cuda_, other.cuda_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Cuda::Room::~Room() {
  if (address_ == 0) return;
  cuda_->driver_->use(cuda_->driver_->context);
  cuda_->driver_->release(address_);
}

void Cuda::Room::fill(const void* from, std::size_t bytes) {
  cuda_->driver_->enter();
  cuda_->driver_->check(cuda_->driver_->copy_in(address_, from, bytes), "take data");
}

void Cuda::Room::read(void* to, std::size_t bytes) const {
  cuda_->driver_->enter();
  cuda_->driver_->check(cuda_->driver_->copy_out(to, address_, bytes), "give data back");
}

void Cuda::Room::fill(const Pinned& from, std::size_t bytes, const Stream& stream) {
  cuda_->driver_->enter();
  cuda_->driver_->check(cuda_->driver_->copy_in_later(address_, from.data(), bytes, stream.handle()), "take data");
}

void Cuda::Room::read(const Pinned& to, std::size_t bytes, const Stream& stream) const {
  cuda_->driver_->enter();
  cuda_->driver_->check(cuda_->driver_->copy_out_later(to.data(), address_, bytes, stream.handle()), "give data back");
}

void Cuda::Room::clear(const Stream& stream) {
  if (bytes_ == 0) return;
  cuda_->driver_->enter();
  cuda_->driver_->check(cuda_->driver_->set_bytes(address_, 0, bytes_, stream.handle()), "clear its memory");
}

namespace {

std::atomic<std::uint64_t> total_on_gpu, total_on_cpu;

}  // namespace

void count_batch(std::size_t on_gpu, std::size_t on_cpu) {
  total_on_gpu += on_gpu;
  total_on_cpu += on_cpu;
}

}  // namespace internal

const DeviceReport& device_report() { return internal::search().report; }

DeviceCounts device_counts() { return {internal::total_on_gpu, internal::total_on_cpu}; }

}  // namespace attsvm
