// SPDX-License-Identifier: Apache-2.0
// What threads that move files to a device have in common: two slots of page-locked memory each, one that is filled
// while the other is on its way.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/thread_pool.hpp"
#include "flow/slot_memory.hpp"

namespace warpcipher {

inline constexpr std::size_t slots_of_thread = 2;

// H200, a file of 8 GiB in memory, AES-256-GCM in chunks of 16 KiB, GB/s by pieces of 1, 2 and 4 MiB: 16 threads 39.3,
// 47.0, 50.2; 8 threads 32.0, 42.9, 44.4; 4 threads 19.2, 22.3, 22.0. Longer ones leave the caches: of 8, 16 and 32
// MiB, 31.5, 31, 11; 29, 23, 13; 15.8, 13, 11. What is shorter than that for all threads is shared among them.
inline constexpr std::size_t most_slot_len = std::size_t{4} << 20;
inline constexpr std::size_t least_slot_len = std::size_t{1} << 20;

// The threads of a call that asks for `asked` of them; 0: as many as the process has cores. More than that are not
// used.
inline std::size_t threads_for(std::size_t asked) {
  const std::size_t most = ThreadPool::instance().threads();
  return asked == 0 ? most : std::min(asked, most);
}

// Bytes of a slot where a call moves `total` on `threads` threads. H200, 32 MiB of that file on 16 threads, ms by slots
// of 0.5, 1, 2 and 4 MiB: 2.4, 1.8, 2.4, 2.0.
inline std::size_t slot_len_for(std::uint64_t total, std::size_t threads) {
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(std::bit_floor(total / (slots_of_thread * threads)), least_slot_len, most_slot_len));
}

// The threads that have work and slots of that length.
inline std::size_t threads_with_slots(std::size_t threads, std::uint64_t total, std::size_t slot_len) {
  const auto pieces = static_cast<std::size_t>(total / slot_len + (total % slot_len != 0 ? 1 : 0));
  return std::clamp<std::size_t>(std::min(pieces, PinnedBudget::of_call() / (slots_of_thread * slot_len)), 1, threads);
}

// Pieces of a text, given out in order to any thread.
class TextCutter {
 public:
  struct Piece {
    std::uint64_t begin = 0;
    std::size_t len = 0;  // 0: there is none left
  };

  TextCutter(std::uint64_t text_len, std::size_t piece_len) : text_len_(text_len), piece_len_(piece_len) {}

  Piece next() {
    const std::uint64_t begin = next_.fetch_add(1, std::memory_order_relaxed) * piece_len_;
    if (begin >= text_len_) return {};
    return {begin, static_cast<std::size_t>(std::min<std::uint64_t>(piece_len_, text_len_ - begin))};
  }

 private:
  const std::uint64_t text_len_;
  const std::size_t piece_len_;
  std::atomic<std::uint64_t> next_{0};
};

// What a thread does that writes: one slot goes to the file while the other is filled. Slot: load() fills it with the
// next piece, false when there is none; write() writes what it holds, if anything, false where that failed.
template <class Slot>
void write_in_turns(std::array<Slot, slots_of_thread>& slots) {
  for (std::size_t turn = 0; slots[turn % slots_of_thread].write(); ++turn) {
    if (slots[turn % slots_of_thread].load()) continue;
    slots[(turn + 1) % slots_of_thread].write();
    return;
  }
}

}  // namespace warpcipher
