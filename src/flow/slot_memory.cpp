// SPDX-License-Identifier: Apache-2.0
#include "flow/slot_memory.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <thread>

#include "flow/copy.hpp"

namespace warpcipher {
namespace {

// Blocks that a thread keeps: as many as the slots of one payload use. Others are wiped at once.
constexpr std::size_t most_kept = 4;
constexpr std::size_t least_rounded = std::size_t{64} << 10;  // the engine keeps no smaller blocks
constexpr std::size_t most_rounded = std::size_t{16} << 20;
constexpr std::chrono::microseconds time_between_looks{20};

}  // namespace

PinnedBlock PinnedBlock::take(DeviceEngine& engine, std::size_t len) {
  if (PinnedCache* const cache = PinnedCache::current()) {
    // Rounded up, so that it is long enough for the next payload.
    if (len <= most_rounded) len = std::bit_ceil(std::max(len, least_rounded));
    const auto found = std::find_if(cache->kept_.begin(), cache->kept_.end(), [&](const PinnedCache::Kept& kept) {
      return kept.engine == &engine && kept.block.len >= len;
    });
    if (found != cache->kept_.end()) {
      const PinnedBlock block = found->block;
      cache->kept_.erase(found);
      return block;
    }
  }
  const PinnedBlock block{static_cast<std::uint8_t*>(engine.allocate_pinned(len)), len};
  PinnedBudget::counter().fetch_add(len, std::memory_order_relaxed);
  return block;
}

void PinnedBlock::give(DeviceEngine& engine) const noexcept {
  PinnedCache* const cache = PinnedCache::current();
  if (cache != nullptr && cache->kept_.size() < most_kept) {
    try {
      cache->kept_.push_back({&engine, *this});
      return;
    } catch (const std::bad_alloc&) {  // no room to remember it
    }
  }
  wipe_and_free(engine);
}

void PinnedBlock::wipe_and_free(DeviceEngine& engine) const noexcept {
  wipe_in_parallel(data, secret_len);
  engine.free_pinned(data, len, 0);
  PinnedBudget::counter().fetch_sub(len, std::memory_order_relaxed);
}

PinnedCache*& PinnedCache::current() noexcept {
  thread_local PinnedCache* memory = nullptr;
  return memory;
}

void PinnedCache::wipe() noexcept {
  for (const Kept& kept : kept_) kept.block.wipe_and_free(*kept.engine);
  kept_.clear();
}

SlotMemory::~SlotMemory() {
  try {
    const SelectedDevice scope(engine_, device_);
    try {
      wait();                 // after an exception the stream may still use the memory
    } catch (const Error&) {  // the error that brought us here is already reported
    }
    for (const Block& block : blocks_) engine_.deallocate(block.data, block.len, block.secret_len, stream_);
    if (has_stream_) engine_.destroy_stream(stream_);
  } catch (const Error&) {  // the driver is gone, and with it what it held
  }
  if (pinned_.data != nullptr) pinned_.give(engine_);
}

Stream SlotMemory::stream() {
  if (!has_stream_) {
    const SelectedDevice scope(engine_, device_);
    stream_ = engine_.create_stream();
    has_stream_ = true;
  }
  is_busy_ = true;
  return stream_;
}

// The driver's wait spins. With it eight payloads of a queue took 8.6 cores, with looks 4.3.
void SlotMemory::wait() {
  if (!is_busy_) return;
  if (ActiveTransfer::count() > 1) {
    while (!is_done()) std::this_thread::sleep_for(time_between_looks);
    return;
  }
  const SelectedDevice scope(engine_, device_);
  engine_.wait(stream_);
  is_busy_ = false;
}

bool SlotMemory::is_done() {
  if (!is_busy_) return true;
  const SelectedDevice scope(engine_, device_);
  is_busy_ = !engine_.is_done(stream_);
  return !is_busy_;
}

std::uint8_t* SlotMemory::pinned(std::size_t len, std::size_t next_len) {
  if (len > pinned_.len) {
    const bool is_first = pinned_.data == nullptr;
    if (!is_first) pinned_.give(engine_);
    pinned_ = {};
    pinned_ = PinnedBlock::take(engine_, is_first ? len : std::max(len, next_len));
  }
  return pinned_.data;
}

std::uint8_t* SlotMemory::on_device(std::size_t len) {
  blocks_.reserve(blocks_.size() + 1);
  const Stream ordered = stream();
  const SelectedDevice scope(engine_, device_);
  auto* const data = static_cast<std::uint8_t*>(engine_.allocate(len, ordered));
  blocks_.push_back({data, len, 0});
  return data;
}

void SlotMemory::set_secret(const std::uint8_t* memory, std::size_t len) {
  if (memory == pinned_.data) {
    pinned_.secret_len = std::max(pinned_.secret_len, len);
  } else {
    std::ranges::find(blocks_, memory, &Block::data)->secret_len = len;
  }
}

}  // namespace warpcipher
