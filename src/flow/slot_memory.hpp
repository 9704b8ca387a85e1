// SPDX-License-Identifier: Apache-2.0
// A slot: what a piece on its way to or from a device has while it is under way. All pieces of the process share one
// budget of page-locked memory, and threads wait for a device only here.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {

// Counts the page-locked memory of slots. A call plans for at most `most`, for less where others have some of it when
// it begins, but never for less than `least`: with that much 16 threads keep the link busy. Nothing is reserved, so
// calls that begin together plan for `most` each.
class PinnedBudget {
 public:
  static constexpr std::size_t most = std::size_t{512} << 20, least = std::size_t{128} << 20;

  static std::size_t in_use() noexcept { return counter().load(std::memory_order_relaxed); }
  static std::size_t of_call() noexcept { return std::max(least, most - std::min(most, in_use())); }

 private:
  friend struct PinnedBlock;

  static std::atomic<std::size_t>& counter() noexcept {
    static constinit std::atomic<std::size_t> bytes{0};
    return bytes;
  }
};

// Page-locked host memory, of which the first `secret_len` bytes are wiped before it goes back to the engine.
struct PinnedBlock {
  std::uint8_t* data = nullptr;
  std::size_t len = 0;
  std::size_t secret_len = 0;

  // One of at least `len` bytes, from the thread's cache if that has one.
  static PinnedBlock take(DeviceEngine& engine, std::size_t len);
  // To that cache, or to the engine.
  void give(DeviceEngine& engine) const noexcept;
  void wipe_and_free(DeviceEngine& engine) const noexcept;
};

// While one lives, it keeps the blocks that its thread is done with, unwiped: for a thread that expects more work, as a
// wipe would take as long as the link takes for the data. Its owner calls wipe() when no more work waits.
class PinnedCache {
 public:
  PinnedCache() noexcept : outer_(current()) { current() = this; }
  PinnedCache(const PinnedCache&) = delete;
  PinnedCache& operator=(const PinnedCache&) = delete;
  ~PinnedCache() {
    wipe();
    current() = outer_;
  }

  bool empty() const noexcept { return kept_.empty(); }

  // Wipes the memory and gives it back to its engine.
  void wipe() noexcept;

 private:
  friend struct PinnedBlock;

  struct Kept {
    DeviceEngine* engine;
    PinnedBlock block;
  };

  static PinnedCache*& current() noexcept;

  PinnedCache* const outer_;
  std::vector<Kept> kept_;
};

// Counts one transfer of host data, from its beginning to its end: for example one for each payload of a queue. The
// only transfer may use all cores and spin while it waits; one of several leaves the cores to the others.
class ActiveTransfer {
 public:
  ActiveTransfer() noexcept { counter().fetch_add(1, std::memory_order_relaxed); }
  ActiveTransfer(const ActiveTransfer&) = delete;
  ActiveTransfer& operator=(const ActiveTransfer&) = delete;
  ~ActiveTransfer() { counter().fetch_sub(1, std::memory_order_relaxed); }

  // Transfers in progress now.
  static std::size_t count() noexcept { return counter().load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::size_t>& counter() noexcept {
    static constinit std::atomic<std::size_t> transfers{0};
    return transfers;
  }
};

// A stream and memory, each made when it is first asked for: page-locked memory is costly. When the slot goes, it waits
// for the stream, and wipes what was secret. Of one thread at a time.
class SlotMemory {
 public:
  SlotMemory(DeviceEngine& engine, int device) : engine_(engine), device_(device) {}
  explicit SlotMemory(DeviceEngine& engine) : SlotMemory(engine, engine.current_device()) {}
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;
  ~SlotMemory();

  // To enqueue work on.
  Stream stream();

  // Returns when the stream is done, if there is one; or says whether it is.
  void wait();
  bool is_done();

  // Host memory for `len` bytes, one block for the life of the slot. Its content is lost when it must grow: then it
  // grows to `len` the first time and to at least `next_len` after that.
  std::uint8_t* pinned(std::size_t len, std::size_t next_len = 0);

  // New memory of the device.
  std::uint8_t* on_device(std::size_t len);

  // The first `len` bytes of one of them are secret from now on. The device's may become fewer, or none, by
  // another call; those of the host do not: the thread's cache may have left secrets there.
  void set_secret(const std::uint8_t* memory, std::size_t len);

 private:
  struct Block {
    std::uint8_t* data;
    std::size_t len, secret_len;
  };

  DeviceEngine& engine_;
  const int device_;
  Stream stream_ = nullptr;
  bool has_stream_ = false;
  bool is_busy_ = false;  // work was enqueued, and not waited for
  PinnedBlock pinned_;
  std::vector<Block> blocks_;  // of the device
};

}  // namespace warpcipher
