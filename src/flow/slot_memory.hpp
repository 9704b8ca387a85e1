// SPDX-License-Identifier: Apache-2.0
// What a piece on its way to or from a device has while it is under way, and the budget of page-locked memory that all
// such pieces of the process share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {

// Counts the page-locked memory of slots and bounce buffers. A call plans for at most `most`, for less where others
// have some of it when it begins, but never for less than `least`: with that much 16 threads keep the link busy.
// Nothing is reserved, so calls that begin together plan for `most` each.
class PinnedBudget {
 public:
  static constexpr std::size_t most = std::size_t{512} << 20, least = std::size_t{128} << 20;

  static std::size_t in_use() noexcept { return counter().load(std::memory_order_relaxed); }
  static std::size_t of_call() noexcept { return std::max(least, most - std::min(most, in_use())); }

  static std::uint8_t* take(DeviceEngine& engine, std::size_t len) {
    auto* const memory = static_cast<std::uint8_t*>(engine.allocate_pinned(len));
    counter().fetch_add(len, std::memory_order_relaxed);
    return memory;
  }
  // secret_len: bytes that are wiped.
  static void give(DeviceEngine& engine, std::uint8_t* memory, std::size_t len, std::size_t secret_len) noexcept {
    engine.free_pinned(memory, len, secret_len);
    counter().fetch_sub(len, std::memory_order_relaxed);
  }

 private:
  static std::atomic<std::size_t>& counter() noexcept {
    static constinit std::atomic<std::size_t> bytes{0};
    return bytes;
  }
};

// A stream and memory, each made when it is first asked for: page-locked memory is costly. What goes back is no longer
// used by the stream, and what was secret in it is wiped. The device is the current one, then and when it goes back.
class SlotMemory {
 public:
  explicit SlotMemory(DeviceEngine& engine) : engine_(engine) {}
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;
  // After an exception the stream may still use the memory.
  ~SlotMemory() {
    if (!has_stream_) return;
    try {
      engine_.wait(stream_);
    } catch (const Error&) {  // the error that brought us here is already reported
    }
    for (const Block& block : blocks_) {
      if (block.is_pinned) {
        PinnedBudget::give(engine_, block.data, block.len, block.secret_len);
      } else {
        engine_.deallocate(block.data, block.len, block.secret_len, stream_);
      }
    }
    engine_.destroy_stream(stream_);
  }

  Stream stream() {
    if (!has_stream_) stream_ = engine_.create_stream();
    has_stream_ = true;
    return stream_;
  }

  // Returns when the stream is done, if there is one.
  void wait() {
    if (has_stream_) engine_.wait(stream_);
  }

  // New memory of the host, or of the device.
  std::uint8_t* pinned(std::size_t len) { return add(len, true); }
  std::uint8_t* on_device(std::size_t len) { return add(len, false); }

  // The first `len` bytes of one of them are secret from now on; 0: none is any more.
  void set_secret(const std::uint8_t* memory, std::size_t len) {
    std::ranges::find(blocks_, memory, &Block::data)->secret_len = len;
  }

 private:
  struct Block {
    std::uint8_t* data;
    std::size_t len, secret_len;
    bool is_pinned;
  };

  std::uint8_t* add(std::size_t len, bool is_pinned) {
    stream();
    blocks_.reserve(blocks_.size() + 1);
    auto* const data =
        is_pinned ? PinnedBudget::take(engine_, len) : static_cast<std::uint8_t*>(engine_.allocate(len, stream_));
    blocks_.push_back({data, len, 0, is_pinned});
    return data;
  }

  DeviceEngine& engine_;
  Stream stream_ = nullptr;
  bool has_stream_ = false;
  std::vector<Block> blocks_;
};

// Bounce buffers: page-locked host memory that texts pass on their way to and from a device. A buffer is wiped before
// its memory goes back to the engine. A thread that expects more work keeps the memory unwiped from one transfer to the
// next: a wipe would take as long as the link takes for the data.

// While one lives, it keeps the memory of the bounce buffers that its thread is done with. Its owner calls wipe() when
// no more work waits.
class BounceBufferCache {
 public:
  BounceBufferCache() noexcept : outer_(current()) { current() = this; }
  BounceBufferCache(const BounceBufferCache&) = delete;
  BounceBufferCache& operator=(const BounceBufferCache&) = delete;
  ~BounceBufferCache() {
    wipe();
    current() = outer_;
  }

  bool empty() const noexcept { return kept_.empty(); }

  // Wipes the memory and gives it back to its engine.
  void wipe() noexcept;

 private:
  friend class BounceBuffer;

  struct Block {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;  // bytes to be wiped
  };

  struct Kept {
    DeviceEngine* engine;
    Block block;
  };

  static BounceBufferCache*& current() noexcept;
  static Block take(DeviceEngine& engine, std::size_t size);
  static void give(DeviceEngine& engine, const Block& block) noexcept;
  static void wipe_and_free(DeviceEngine& engine, const Block& block) noexcept;

  BounceBufferCache* const outer_;
  std::vector<Kept> kept_;
};

// One buffer, which grows as it is needed: page-locked memory is costly. Destroyed by the thread that reserved.
class BounceBuffer {
 public:
  explicit BounceBuffer(DeviceEngine& engine) : engine_(engine) {}
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;
  ~BounceBuffer() { release(); }

  // Makes room for `len` bytes, which count as used from now on. What the buffer held is lost when it must grow. Then
  // it grows to `len` the first time and to at least `next_len` after that. Throws as allocate_pinned().
  void reserve(std::size_t len, std::size_t next_len);

  std::uint8_t* data() const noexcept { return block_.data; }

 private:
  void release() noexcept;

  DeviceEngine& engine_;
  BounceBufferCache::Block block_;
};

}  // namespace warpcipher
