#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "attsvm/device.h"

namespace attsvm::internal {

/// A call of CUDA that failed, in words. Work that throws it is done on the CPU instead.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Kernels of this program as nvcc made them (build/…/*_kernels.fatbin), null if the build had no nvcc.
using KernelImage = const void*;
std::vector<KernelImage> built_kernels();  ///< one per file of kernels

/// Adds to device_counts().
void count_batch(std::size_t on_gpu, std::size_t on_cpu);

/// The GPU, reached through the driver's library, which is loaded when the first object is asked for. May be used by
/// several threads at once.
class Cuda {
 public:
  /// The GPU, or null: device_report() says why. A forked child has none, because CUDA does not survive a fork.
  static Cuda* find();

  /// Copies and launches that follow each other, beside those of other streams.
  class Stream {
   public:
    explicit Stream(Cuda& cuda);
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream();
    void* handle() const { return handle_; }
    void wait() const;  ///< until all of it has ended

   private:
    Cuda* cuda_;
    void* handle_ = nullptr;
  };

  /// Memory of the host from and to which streams copy.
  class Pinned {
   public:
    Pinned(Cuda& cuda, std::size_t bytes);
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    ~Pinned();
    std::byte* data() const { return static_cast<std::byte*>(data_); }

   private:
    Cuda* cuda_;
    void* data_ = nullptr;
  };

  /// Memory on the GPU.
  class Room {
   public:
    Room() = default;
    Room(Cuda& cuda, std::size_t bytes);
    Room(Room&& other) noexcept;
    Room& operator=(Room&& other) noexcept;
    ~Room();
    std::uint64_t address() const { return address_; }
    void fill(const void* from, std::size_t bytes);  ///< copies to the GPU
    void read(void* to, std::size_t bytes) const;    ///< copies from the GPU, after all launches before
    /// The same in a stream, whose wait() tells when it is done.
    void fill(const Pinned& from, std::size_t bytes, const Stream& stream);
    void read(const Pinned& to, std::size_t bytes, const Stream& stream) const;
    void clear(const Stream& stream);  ///< sets all bytes to zero

   private:
    Cuda* cuda_ = nullptr;
    std::uint64_t address_ = 0;
    std::size_t bytes_ = 0;
  };

  std::size_t free_memory();
  std::size_t shared_memory() const;  ///< bytes that the threads of a block can share
  /// Whether there is a kernel of this name.
  bool has(const std::string& kernel);
  /// Starts a kernel. `arguments` point at the values of its parameters; `shared` bytes are for each block; a launch
  /// without a stream follows all launches and copies without one.
  void launch(const std::string& kernel, unsigned blocks, unsigned threads, void** arguments, std::size_t shared = 0,
              const Stream* stream = nullptr);
  void wait();  ///< until all launches have ended

 private:
  struct Driver;
  explicit Cuda(std::unique_ptr<Driver> driver);
  ~Cuda();
  std::unique_ptr<Driver> driver_;

  friend struct Search;
};

}  // namespace attsvm::internal
