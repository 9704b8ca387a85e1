// SPDX-License-Identifier: Apache-2.0
#include "flow/slot_memory.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "flow/copy.hpp"

namespace warpcipher {
namespace {

// Blocks that a thread keeps: as many as the slots of one payload use. Others are wiped at once.
constexpr std::size_t most_kept = 4;
constexpr std::size_t least_rounded = std::size_t{64} << 10;  // the engine keeps no smaller blocks
constexpr std::size_t most_rounded = std::size_t{16} << 20;

}  // namespace

void BounceBufferCache::wipe_and_free(DeviceEngine& engine, const Block& block) noexcept {
  wipe_in_parallel(block.data, block.used);
  PinnedBudget::give(engine, block.data, block.size, 0);
}

BounceBufferCache*& BounceBufferCache::current() noexcept {
  thread_local BounceBufferCache* memory = nullptr;
  return memory;
}

BounceBufferCache::Block BounceBufferCache::take(DeviceEngine& engine, std::size_t size) {
  if (BounceBufferCache* const cache = current()) {
    // Rounded up, so that it is long enough for the next payload.
    if (size <= most_rounded) size = std::bit_ceil(std::max(size, least_rounded));
    const auto found = std::find_if(cache->kept_.begin(), cache->kept_.end(), [&](const Kept& kept) {
      return kept.engine == &engine && kept.block.size >= size;
    });
    if (found != cache->kept_.end()) {
      const Block block = found->block;
      cache->kept_.erase(found);
      return block;
    }
  }
  return {PinnedBudget::take(engine, size), size, 0};
}

void BounceBufferCache::give(DeviceEngine& engine, const Block& block) noexcept {
  BounceBufferCache* const cache = current();
  if (cache != nullptr && cache->kept_.size() < most_kept) {
    try {
      cache->kept_.push_back({&engine, block});
      return;
    } catch (const std::bad_alloc&) {  // no room to remember it
    }
  }
  wipe_and_free(engine, block);
}

void BounceBufferCache::wipe() noexcept {
  for (const Kept& kept : kept_) wipe_and_free(*kept.engine, kept.block);
  kept_.clear();
}

void BounceBuffer::reserve(std::size_t len, std::size_t next_len) {
  if (len > block_.size) {
    const bool is_first = block_.data == nullptr;
    release();
    block_ = BounceBufferCache::take(engine_, is_first ? len : std::max(len, next_len));
  }
  block_.used = std::max(block_.used, len);
}

void BounceBuffer::release() noexcept {
  if (block_.data != nullptr) BounceBufferCache::give(engine_, block_);
  block_ = {};
}

}  // namespace warpcipher
