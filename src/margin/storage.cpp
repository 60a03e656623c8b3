#include "margin/storage.h"

#include <vector>

namespace attsvm {
namespace {

constexpr std::size_t kKeep = std::size_t{16} << 20;  // bytes a thread keeps at most
constexpr std::size_t kWaste = 2;                     // times what was asked for that a block may have

struct Block {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes;
};

struct Kept {
  std::vector<Block> blocks;
  std::size_t bytes = 0;
};

Kept& kept() {
  thread_local Kept blocks;
  return blocks;
}

}  // namespace

std::byte* RecycledMemory::take(std::size_t& bytes) {
  Kept& here = kept();
  Block* best = nullptr;
  for (Block& block : here.blocks) {
    if (block.bytes >= bytes && block.bytes <= kWaste * bytes && (best == nullptr || block.bytes < best->bytes))
      best = &block;
  }
  if (best == nullptr) return std::make_unique_for_overwrite<std::byte[]>(bytes).release();
  bytes = best->bytes;
  here.bytes -= bytes;
  std::byte* memory = best->memory.release();
  std::swap(*best, here.blocks.back());
  here.blocks.pop_back();
  return memory;
}

void RecycledMemory::give_back(std::byte* block, std::size_t bytes) {
  std::unique_ptr<std::byte[]> memory(block);
  Kept& here = kept();
  if (here.bytes + bytes > kKeep) return;
  here.bytes += bytes;
  here.blocks.push_back({std::move(memory), bytes});
}

}  // namespace attsvm
