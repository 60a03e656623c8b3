// A browser gives the library no GPU.
#include "device/cuda.h"

namespace attsvm::internal {

struct Cuda::Driver {};

Cuda* Cuda::find() { return nullptr; }
bool Cuda::has(const std::string&) { return false; }
std::size_t Cuda::free_memory() { return 0; }
void Cuda::launch(const std::string&, unsigned, unsigned, void**) {}
Cuda::~Cuda() = default;
Cuda::Room::Room(Cuda&, std::size_t) {}
Cuda::Room::Room(Room&&) noexcept = default;
Cuda::Room& Cuda::Room::operator=(Room&&) noexcept = default;
Cuda::Room::~Room() = default;
void Cuda::Room::fill(const void*, std::size_t) {}
void Cuda::Room::read(void*, std::size_t) const {}

}  // namespace attsvm::internal
