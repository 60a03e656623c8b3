// A browser gives the library no GPU.
#include "device/cuda.h"

namespace attsvm::internal {

struct Cuda::Driver {};

Cuda* Cuda::find() { return nullptr; }
bool Cuda::has(const std::string&) { return false; }
std::size_t Cuda::free_memory() { return 0; }
void Cuda::launch(const std::string&, unsigned, unsigned, void**, std::size_t, const Stream*) {}
void Cuda::wait() {}
std::size_t Cuda::shared_memory() const { return 0; }
Cuda::~Cuda() = default;
Cuda::Stream::Stream(Cuda& cuda) : cuda_(&cuda) {}
Cuda::Stream::~Stream() = default;
void Cuda::Stream::wait() const {}
Cuda::Pinned::Pinned(Cuda& cuda, std::size_t) : cuda_(&cuda) {}
Cuda::Pinned::~Pinned() = default;
Cuda::Room::Room(Cuda&, std::size_t) {}
Cuda::Room::Room(Room&&) noexcept = default;
Cuda::Room& Cuda::Room::operator=(Room&&) noexcept = default;
Cuda::Room::~Room() = default;
void Cuda::Room::fill(const void*, std::size_t) {}
void Cuda::Room::read(void*, std::size_t) const {}
void Cuda::Room::fill(const Pinned&, std::size_t, const Stream&) {}
void Cuda::Room::clear(const Stream&) {}
void Cuda::Room::read(const Pinned&, std::size_t, const Stream&) const {}

void count_batch(std::size_t, std::size_t) {}

}  // namespace attsvm::internal
