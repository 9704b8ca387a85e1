// SPDX-License-Identifier: Apache-2.0
// Bounce buffers: page-locked host memory that texts pass on their way to and from a device. A buffer is wiped before
// its memory goes back to the engine. A thread that expects more work keeps the memory unwiped from one transfer to the
// next: a wipe would take as long as the link takes for the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher {

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
