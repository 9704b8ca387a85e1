// SPDX-License-Identifier: Apache-2.0
// The counter mode (SP 800-38A, section 6.5), also inside GCM and GCM-SIV. The common part of consecutive counters is
// computed once: 256 counters that differ only in the byte that counts fastest share most of rounds 1 and 2
// (CommonRounds). That is the last byte, and the first of GCM-SIV.
//
// So tiles begin where that byte is 0. The first tile begins before the message, by as many units as the last byte of
// the first counter says:
//
//   counter's last byte   fe ff | 00 01 ... ff | 00 01 ... ff | 00 ... 17
//   unit                   0  1 |  2  3 ... 101|102 ...    201|202 ... 219   (hexadecimal)
//   tile                   0    |  1           |  2                          the last takes the rest
//
// So every carry, past 8, 32 or 128 bits, is between two tiles.
#pragma once

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/modes.cuh"
#include "engine/cuda/runtime/realign.cuh"

namespace warpcipher::cuda::lane_table {

// The counter `distance` after `start`.
__device__ __forceinline__ Block add_counter(const Block& start, std::uint64_t distance, bool wrap_32) {
  const std::uint64_t high = std::uint64_t{byte_swap(start.words[0])} << 32 | byte_swap(start.words[1]);
  const std::uint64_t low = std::uint64_t{byte_swap(start.words[2])} << 32 | byte_swap(start.words[3]);
  const std::uint64_t sum = low + distance;
  const std::uint64_t carried = high + (sum < low);
  return {{wrap_32 ? start.words[0] : byte_swap(static_cast<std::uint32_t>(carried >> 32)),
           wrap_32 ? start.words[1] : byte_swap(static_cast<std::uint32_t>(carried)),
           wrap_32 ? start.words[2] : byte_swap(static_cast<std::uint32_t>(sum >> 32)),
           byte_swap(static_cast<std::uint32_t>(sum))}};
}

// Counters as big-endian numbers: of the whole block (SP 800-38A), or of its last 32 bits (inc32 of SP 800-38D).
struct BigEndianCounter {
  static constexpr CountingByte byte = CountingByte::last;
  static constexpr int word = 3;  // that counts fastest

  static __device__ __forceinline__ std::uint32_t low_byte(const Block& counter) { return counter.words[3] >> 24; }
  static __device__ __forceinline__ Block add(const Block& start, std::uint64_t distance, bool wrap_32) {
    return add_counter(start, distance, wrap_32);
  }
};

// The first 32 bits of a block as a little-endian number, which wraps (RFC 8452, section 4).
struct LittleEndianCounter {
  static constexpr CountingByte byte = CountingByte::first;
  static constexpr int word = 0;

  static __device__ __forceinline__ std::uint32_t low_byte(const Block& counter) { return counter.words[0] & 0xffu; }
  static __device__ __forceinline__ Block add(const Block& start, std::uint64_t distance, bool) {
    return {{start.words[0] + static_cast<std::uint32_t>(distance), start.words[1], start.words[2], start.words[3]}};
  }
};

// Counter: one of the two. HasText: false writes the key stream itself, and reads nothing. Aligned: for texts at
// multiples of 16, and slow for others; false: for texts at any address (realign.cuh). Registers are short, so no
// kernel is for both.
template <class Counter, bool HasText = true, bool Aligned = true>
struct CounterModeOf {
  template <bool AreAligned>
  using At = CounterModeOf<Counter, HasText, AreAligned>;
  using CounterType = Counter;
  static constexpr bool has_text = HasText;
  static constexpr bool inverse = false;
  static constexpr std::uint32_t unit_len = 16;
  static constexpr bool runs_of_tiles = true;
  using Parameters = CounterParameters;

  // For so few blocks, the common rounds cost more than they save.
  static constexpr std::uint32_t few = 2 * warp_len;
  static constexpr std::uint32_t carry = 256;
  static constexpr std::uint32_t group = blocks_in_flight * warp_len;
  static_assert(carry == 2 * group);

  static __device__ __forceinline__ std::uint32_t lead(const MessageView& view) {
    return Counter::low_byte(view.start);
  }

  // The last byte, below 32, of a lane's counters in rows of 32. Lane l stores to block l of 32 in memory, wherever the
  // text begins, so that eight lanes store to one line.
  static __device__ __forceinline__ std::uint32_t column_of_lane(const MessageView& view) {
    const auto begin = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(view.out) / 16);
    return (lane_index() + lead(view) - begin) % warp_len;
  }

  // XORs rows of the key stream to a run of text at any address.
  template <int N>
  static __device__ __forceinline__ void add_rows(const WarpRows& rows, const std::uint8_t* in, std::uint8_t* out,
                                                  Block (&blocks)[N]) {
    // Rows loaded at once: with more the hybrid kernels spill. Warps of tables, which have four rows, need registers
    // for common rounds too.
    constexpr std::uint32_t at_once = N > blocks_in_flight ? 2 : 1;
#pragma unroll
    for (std::uint32_t n = 0; HasText && n < N; n += at_once) {
      Block texts[at_once];
      rows.from(n).load(in, texts);
#pragma unroll
      for (std::uint32_t i = 0; i < at_once; ++i) blocks[n + i] = blocks[n + i] ^ texts[i];
    }
    rows.store(out, blocks);
  }

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters& parameters) {
    Text text = tile.text;
    text.in_len = text.in_len < 16 * tile.units ? text.in_len : 16 * tile.units;
    text.out_len = text.out_len < 16 * tile.units ? text.out_len : 16 * tile.units;
    if (parameters.verdicts != nullptr && parameters.verdicts[tile.message] == 0) {
      for_each_step(text, tile.units, [&](auto step, std::uint32_t base) {
#pragma unroll
        for (int n = 0; n < step.blocks; ++n) text.store_if<step.whole>(base + lane_index() + warp_len * n, Block{});
      });
      return;
    }
    const std::uint32_t whole = text.aligned || !Aligned ? text.in_len / 16 : 0;
    std::uint32_t done = 0;
#pragma unroll 1
    while (done < tile.units) {
      const std::uint64_t number = lead(tile.view) + tile.first_unit + done;  // counted as the last byte counts
      const std::uint32_t last = static_cast<std::uint32_t>(number) % carry;
      std::uint32_t end = done + carry - last;
      std::uint32_t rest = whole > end ? whole - end : 0;
      if (end > whole) end = whole;
      if (end > done + few) {
        // The first few blocks of a group would cost as much as a whole group.
        const std::uint32_t tail = (last + end - done) % group;
        if (tail <= warp_len && end - done > group) end -= tail;
        const CommonRounds common = find_common(cipher, tile, number / carry, parameters);
        encrypt_rows(cipher, text, common, done, end, last);
      } else {
        if (rest <= few) end = tile.units;
        encrypt_few(cipher, text, tile, done, end, parameters.wrap_32);
      }
      done = end;
    }
  }

 private:
  // Blocks [done, end). The last byte of the first counter is `last`; it does not carry. A lane takes every 32nd block.
  template <class Cipher>
  __device__ __forceinline__ void encrypt_rows(const Cipher& cipher, const Text& text, const CommonRounds& common,
                                               std::uint32_t done, std::uint32_t end, std::uint32_t last) {
    const std::uint32_t count = end - done;
    std::uint32_t row = last / group * group;
    if constexpr (!Cipher::key_in_registers) {
      if (row != 0) turn_halves();
    }
#pragma unroll 1
    for (; row < last + count; row += group) {
      Block blocks[blocks_in_flight];
      if constexpr (Cipher::key_in_registers) cipher.template counting_entries<Counter::byte>(halves[0], row + column);
      cipher.encrypt_rest(blocks, common, halves[0]);
      if constexpr (!Cipher::key_in_registers) turn_halves();
      if constexpr (!Aligned) {
        add_rows({row - last, column, count}, text.in + 16 * done, text.out + 16 * done, blocks);
        continue;
      }
      const std::uint32_t index = row + column - last;  // may be before the first block
      const std::int64_t offset = 16 * std::int64_t{static_cast<std::int32_t>(done + index)};
      Block texts[blocks_in_flight];
#pragma unroll
      for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
        const bool is_there = HasText && index + warp_len * n < count;
        texts[n] = is_there ? load_aligned(text.in + (offset + 16 * warp_len * n)) : Block{};
      }
#pragma unroll
      for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
        if (index + warp_len * n < count) store_aligned(text.out + (offset + 16 * warp_len * n), blocks[n] ^ texts[n]);
      }
    }
    if constexpr (!Cipher::key_in_registers) {
      if (row != carry) turn_halves();
    }
  }

  __device__ __forceinline__ void turn_halves() {
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
      const std::uint32_t entry = halves[0][n];
      halves[0][n] = halves[1][n];
      halves[1][n] = entry;
    }
  }

  // The same for any text, with a separate counter for every block.
  template <class Cipher>
  static __device__ __forceinline__ void encrypt_few(const Cipher& cipher, Text text, const TileView& tile,
                                                     std::uint32_t done, std::uint32_t end, bool wrap_32) {
    text.in_len = text.in_len < 16 * end ? text.in_len : 16 * end;
    text.out_len = text.out_len < 16 * end ? text.out_len : 16 * end;
#pragma unroll 1
    for (; done < end; done += warp_len) {
      const std::uint32_t unit = done + lane_index();
      Block blocks[1] = {Counter::add(tile.view.start, tile.first_unit + unit, wrap_32)};
      cipher(blocks);
      text.store(unit, HasText ? blocks[0] ^ text.load(unit) : blocks[0]);
    }
  }

  // Lane l computes the common rounds of one tile: the warp's tile after the next l, if that belongs to the same
  // message and is not a short last tile. So 32 tiles cost as much as one.
  template <class Cipher>
  __device__ __forceinline__ CommonRounds find_common(const Cipher& cipher, const TileView& tile, std::uint64_t number,
                                                      const Parameters& parameters) {
    if (message != tile.message) {
      column = column_of_lane(tile.view);
      if constexpr (!Cipher::key_in_registers) {
        cipher.template counting_entries<Counter::byte>(halves[0], column);
        cipher.template counting_entries<Counter::byte>(halves[1], column + group);
      }
    }
    if (message != tile.message || next != static_cast<std::uint32_t>(number) || turn == warp_len) {
      const std::uint64_t own = number + std::uint64_t{parameters.stride} * lane_index();
      ahead =
          cipher.template common_rounds<Counter::byte>(Counter::add(tile.view.start, carry * own, parameters.wrap_32));
      message = tile.message;
      next = static_cast<std::uint32_t>(number);
      turn = 0;
    }
    const CommonRounds common{from_lane(ahead.first_column, turn),
                              {{from_lane(ahead.second.words[0], turn), from_lane(ahead.second.words[1], turn),
                                from_lane(ahead.second.words[2], turn), from_lane(ahead.second.words[3], turn)}}};
    next += parameters.stride;
    ++turn;
    return common;
  }

  std::uint32_t column = 0;  // of the lane's counters in rows of 32
  // The contribution of byte 15 to rows 0 to 3 and 4 to 7 of every tile of the message, in this order between tiles. If
  // registers are short, it is looked up again for each group.
  std::uint32_t halves[2][blocks_in_flight] = {};
  CommonRounds ahead{};
  std::uint32_t message = 0xffffffffu;
  std::uint32_t next = 0;  // the number of the tile of which lane `turn` has the common rounds
  std::uint32_t turn = warp_len;
};

struct CounterMode : CounterModeOf<BigEndianCounter> {};
struct KeyStreamMode : CounterModeOf<BigEndianCounter, false> {};
struct LittleEndianCounterMode : CounterModeOf<LittleEndianCounter> {
  static constexpr bool many_messages = true;  // a single message is a batch: its first counter is in device memory
};
struct UnalignedCounterMode : CounterMode::At<false> {};
struct UnalignedLittleEndianCounterMode : LittleEndianCounterMode::At<false> {
  static constexpr bool many_messages = true;
};

}  // namespace warpcipher::cuda::lane_table
