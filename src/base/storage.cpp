#include "base/storage.h"

#include <vector>

namespace attsvm::internal {
namespace {

constexpr std::size_t kWaste = 2;    // a kept block is reused if it has at most this times the bytes asked for
constexpr std::size_t kBlocks = 64;  // most blocks that a thread keeps

struct Block {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes;
};

struct Kept {
  Kept() { blocks.reserve(kBlocks); }
  void drop_oldest() {
    bytes -= blocks.front().bytes;
    blocks.erase(blocks.begin());
  }
  std::vector<Block> blocks;  // oldest first
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
  here.blocks.erase(here.blocks.begin() + (best - here.blocks.data()));
  return memory;
}

void RecycledMemory::give_back(std::byte* block, std::size_t bytes) noexcept {
  std::unique_ptr<std::byte[]> memory(block);
  if (bytes > kKept) return;
  Kept& here = kept();
  while (here.bytes + bytes > kKept || here.blocks.size() == kBlocks) here.drop_oldest();
  here.bytes += bytes;
  here.blocks.push_back({std::move(memory), bytes});
}

}  // namespace attsvm::internal
