// SPDX-License-Identifier: Apache-2.0
#include "transfer/staging_memory.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "transfer/copy.hpp"

namespace warpcipher {
namespace {

// Of a thread: the slots of one payload. What comes beyond is wiped at once.
constexpr std::size_t most_kept = 4;
constexpr std::size_t least_rounded = std::size_t{64} << 10;  // the engine keeps no smaller blocks
constexpr std::size_t most_rounded = std::size_t{16} << 20;

void wipe_and_free(DeviceEngine& engine, const StagingMemory::Block& block) noexcept {
  wipe_in_parallel(block.data, block.used);
  engine.free_pinned(block.data, block.size, 0);
}

}  // namespace

StagingMemory*& StagingMemory::current() noexcept {
  thread_local StagingMemory* memory = nullptr;
  return memory;
}

StagingMemory::Block StagingMemory::take(DeviceEngine& engine, std::size_t size) {
  if (StagingMemory* const keeper = current()) {
    // So that the next payload finds it long enough.
    if (size <= most_rounded) size = std::bit_ceil(std::max(size, least_rounded));
    const auto found = std::find_if(keeper->kept_.begin(), keeper->kept_.end(), [&](const Kept& kept) {
      return kept.engine == &engine && kept.block.size >= size;
    });
    if (found != keeper->kept_.end()) {
      const Block block = found->block;
      keeper->kept_.erase(found);
      return block;
    }
  }
  return {static_cast<std::uint8_t*>(engine.allocate_pinned(size)), size, 0};
}

void StagingMemory::give(DeviceEngine& engine, const Block& block) noexcept {
  StagingMemory* const keeper = current();
  if (keeper != nullptr && keeper->kept_.size() < most_kept) {
    try {
      keeper->kept_.push_back({&engine, block});
      return;
    } catch (const std::bad_alloc&) {  // no room to remember it
    }
  }
  wipe_and_free(engine, block);
}

void StagingMemory::wipe() noexcept {
  for (const Kept& kept : kept_) wipe_and_free(*kept.engine, kept.block);
  kept_.clear();
}

}  // namespace warpcipher
