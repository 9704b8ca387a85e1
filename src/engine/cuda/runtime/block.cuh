// SPDX-License-Identifier: Apache-2.0
// A 128-bit block in registers, and the text of a tile: loads and stores blocks at any alignment and of any length.
#pragma once

#include "engine/cuda/runtime/block.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda {

__device__ __forceinline__ std::uint32_t get_byte(const Block& block, std::uint32_t i) {
  return block.words[i / 4] >> (8 * (i % 4)) & 0xffu;
}

__device__ __forceinline__ void set_byte(Block& block, std::uint32_t i, std::uint32_t value) {
  const std::uint32_t shift = 8 * (i % 4);
  block.words[i / 4] = (block.words[i / 4] & ~(0xffu << shift)) | value << shift;
}

__device__ __forceinline__ Block load_aligned(const std::uint8_t* p) {
  const uint4 v = *reinterpret_cast<const uint4*>(p);
  return {{v.x, v.y, v.z, v.w}};
}

__device__ __forceinline__ void store_aligned(std::uint8_t* p, const Block& block) {
  __stcs(reinterpret_cast<uint4*>(p), make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]));
}

// The first `len` bytes (all 16 when len is more) from any address; the rest become `fill`.
__device__ __forceinline__ Block load_bytes(const std::uint8_t* p, std::uint32_t len, std::uint32_t fill = 0) {
  Block block{};
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) set_byte(block, i, i < len ? p[i] : fill);
  return block;
}

__device__ __forceinline__ void store_bytes(std::uint8_t* p, std::uint32_t len, const Block& block) {
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) {
    if (i < len) p[i] = static_cast<std::uint8_t>(get_byte(block, i));
  }
}

// Bytes shift to shift + 15 of the 32 bytes a, b. shift: 0 to 15.
__device__ __forceinline__ Block join_at(const Block& a, const Block& b, std::uint32_t shift) {
  std::uint32_t words[8];
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    words[i] = a.words[i];
    words[4 + i] = b.words[i];
  }
#pragma unroll
  for (std::uint32_t i = 0; i < 6; ++i) words[i] = (shift & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (std::uint32_t i = 0; i < 5; ++i) words[i] = (shift & 4) != 0 ? words[i + 1] : words[i];
  Block joined{};
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) joined.words[i] = __funnelshift_r(words[i], words[i + 1], 8 * (shift % 4));
  return joined;
}

// Block `unit` of a text of `len` bytes, all of it, from any address: by two aligned loads if all that they read is of
// the text, else by bytes.
__device__ __forceinline__ Block load_whole(const std::uint8_t* text, std::uint64_t len, std::uint64_t unit) {
  const std::uint8_t* const p = text + 16 * unit;
  const std::uint32_t past = reinterpret_cast<std::uintptr_t>(p) % 16;
  if (past == 0) return load_aligned(p);
  if (unit == 0 || 16 * unit + 32 - past > len) return load_bytes(p, 16);
  return join_at(load_aligned(p - past), load_aligned(p - past + 16), past);
}

template <class Word>
__device__ __forceinline__ void store_as(std::uint8_t* p, Word value) {
  *reinterpret_cast<Word*>(p) = value;
}

// The first `len` bytes, below 16, to any address, with none of them past a multiple of 16: at most four stores each
// for the bytes up to a multiple of eight and for those after it.
__device__ __forceinline__ void store_part(std::uint8_t* p, std::uint32_t len, Block block) {
  const auto store = [&](auto word, std::uint32_t size, bool wanted) {
    using Word = decltype(word);
    if (!wanted || len < size) return;
    store_as(p, static_cast<Word>(size == 8 ? std::uint64_t{block.words[1]} << 32 | block.words[0] : block.words[0]));
    block = join_at(block, Block{}, size);
    p += size;
    len -= size;
  };
  const auto is_odd_by = [&](std::uint32_t size) { return (reinterpret_cast<std::uintptr_t>(p) & size) != 0; };
  store(std::uint8_t{}, 1, is_odd_by(1));
  store(std::uint16_t{}, 2, is_odd_by(2));
  store(std::uint32_t{}, 4, is_odd_by(4));
  store(std::uint64_t{}, 8, true);
  store(std::uint32_t{}, 4, true);
  store(std::uint16_t{}, 2, true);
  store(std::uint8_t{}, 1, true);
}

// Stores the first `len` bytes of each lane's block at p, which is the same number of bytes past a multiple of 16 in
// all lanes. Every lane of the warp takes part. Where the block of the lane below ends at p, the two lanes' bytes
// between multiples of 16 are stored together: a store of single bytes costs as much as one of 16.
__device__ __forceinline__ void store_joined(std::uint8_t* p, std::uint32_t len, const Block& block) {
  const std::uint32_t past = reinterpret_cast<std::uintptr_t>(p) % 16;
  if (past == 0) {
    if (len == 16) {
      store_aligned(p, block);
    } else {
      store_bytes(p, len, block);
    }
    return;
  }
  const std::uint32_t below = (lane_index() + warp_len - 1) % warp_len;
  const std::uint32_t above = (lane_index() + 1) % warp_len;
  Block before{};
#pragma unroll
  for (std::uint32_t w = 0; w < 4; ++w) before.words[w] = from_lane(block.words[w], below);
  const std::uint32_t room = 16 - past;  // bytes of a block before the next multiple of 16
  const std::uint64_t end = len == 16 ? reinterpret_cast<std::uintptr_t>(p) + 16 : 0;
  const std::uint64_t end_below = from_lane(end, below);  // by every lane, whatever its length
  const bool joins = len >= room && end_below == reinterpret_cast<std::uintptr_t>(p);
  const bool is_joined = (lanes_with(joins) >> above & 1) != 0;
  if (joins) store_aligned(p - past, join_at(before, block, room));
  if (!joins && len != 0) store_part(p, len < room ? len : room, block);
  if (!is_joined && len > room) store_part(p + room, len - room, join_at(block, Block{}, room));
}

// The part of a message's text that one tile covers. Lengths count from the start of the tile, and are limited to 32
// bits.
struct Text {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint32_t in_len;
  std::uint32_t out_len;  // more than in_len if padding is added
  std::uint32_t pad;      // the byte that follows the text: PKCS#7's, or 0
  bool aligned;           // in and out are multiples of 16

  // Block number `unit` of the tile. It may be short, or past the end.
  __device__ __forceinline__ Block load(std::uint32_t unit) const {
    const std::uint32_t offset = 16 * unit;
    if (aligned && offset + 16 <= in_len) return load_aligned(in + offset);
    if (offset + 16 <= in_len) return load_whole(in, in_len, unit);
    return load_bytes(in + offset, in_len > offset ? in_len - offset : 0, pad);
  }

  __device__ __forceinline__ void store(std::uint32_t unit, const Block& block) const {
    const std::uint32_t offset = 16 * unit;
    if (aligned && offset + 16 <= out_len) {
      store_aligned(out + offset, block);
    } else {
      store_bytes(out + offset, out_len > offset ? out_len - offset : 0, block);
    }
  }

  // As store(), of blocks that follow each other from lane to lane, which may begin in any lane. Every lane of the warp
  // takes part.
  __device__ __forceinline__ void store_row(std::uint32_t unit, const Block& block) const {
    if (aligned) return store(unit, block);
    const std::uint32_t offset = 16 * unit;
    const std::uint32_t left = out_len > offset ? out_len - offset : 0;
    store_joined(out + offset, left < 16 ? left : 16, block);
  }

  // The same for a block that is known to be whole and aligned. Every lane of the warp takes part in store_if().
  template <bool Whole>
  __device__ __forceinline__ Block load_if(std::uint32_t unit) const {
    if constexpr (Whole) {
      return load_aligned(in + 16 * unit);
    } else {
      return load(unit);
    }
  }

  template <bool Whole>
  __device__ __forceinline__ void store_if(std::uint32_t unit, const Block& block) const {
    if constexpr (Whole) {
      store_aligned(out + 16 * unit, block);
    } else {
      store_row(unit, block);
    }
  }
};

}  // namespace warpcipher::cuda
