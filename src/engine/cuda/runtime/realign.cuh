// SPDX-License-Identifier: Apache-2.0
// Text at any address: a warp loads and stores aligned words of 16 bytes, and moves bytes between lanes in registers.
// If a text begins `past` bytes after a multiple of 16, each block has a part of two words, and each word of two
// blocks:
//
//   memory    | word 0      | word 1      | word 2      |
//   text      <past>| block 0     | block 1     |
//
// A warp has rows of 32 blocks. A lane has one block of each row, and the lane after it the next block; lane 0 comes
// after lane 31. `column`: the place in its row, from 0. Where a row does not begin in lane 0, a lane can store to the
// same place of a cache line in all rows.
//
// Only words that have a byte of the text are read. Of the first and the last word of a warp's rows a part belongs to
// other warps, which may write it at the same time, or to nobody: it is read and not used, and never written. So a
// text may be enciphered in place.
#pragma once

#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda {

// How far past a multiple of 16 it lies; known to the compiler to be the same in all lanes. All lanes take part.
__device__ __forceinline__ std::uint32_t bytes_past_word(const std::uint8_t* p) {
  return from_lane(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)) % 16, 0);
}

// Bytes begin to begin + 15 of the 32 bytes a, b. begin: 0 to 15.
__device__ __forceinline__ Block join_at(const Block& a, const Block& b, std::uint32_t begin) {
  std::uint32_t words[8];
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    words[i] = a.words[i];
    words[4 + i] = b.words[i];
  }
#pragma unroll
  for (std::uint32_t i = 0; i < 6; ++i) words[i] = (begin & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (std::uint32_t i = 0; i < 5; ++i) words[i] = (begin & 4) != 0 ? words[i + 1] : words[i];
  Block joined{};
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) joined.words[i] = __funnelshift_r(words[i], words[i + 1], 8 * (begin % 4));
  return joined;
}

// join_rows() for one of four ranges of `begin`. So no instruction chooses words, and only those that change lanes are
// shuffled: 4 - Quarter of a row.
template <std::uint32_t Quarter, int N>
__device__ __forceinline__ void join_quarter(Block (&rows)[N], const Block& before, bool is_last, std::uint32_t bits) {
  const std::uint32_t lane_before = (lane_index() + warp_len - 1) % warp_len;
#pragma unroll
  for (int n = N - 1; n >= 0; --n) {
    const Block& row_before = n == 0 ? before : rows[n == 0 ? 0 : n - 1];
    std::uint32_t words[8];
#pragma unroll
    for (std::uint32_t i = Quarter; i < 4; ++i) {
      words[i] = from_lane(is_last ? row_before.words[i] : rows[n].words[i], lane_before);
    }
#pragma unroll
    for (std::uint32_t i = 0; i <= Quarter; ++i) words[4 + i] = rows[n].words[i];
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      rows[n].words[i] = __funnelshift_r(words[Quarter + i], words[Quarter + i + 1], bits);
    }
  }
}

// Replaces each block by bytes begin to begin + 15 of the block before it and itself. before: the row before row 0, of
// which only the last block is used. is_last: whether the lane has the last block of a row. begin: 1 to 15, the same in
// all lanes, which all take part.
template <int N>
__device__ __forceinline__ void join_rows(Block (&rows)[N], const Block& before, bool is_last, std::uint32_t begin) {
  const std::uint32_t bits = 8 * (begin % 4);
  switch (begin / 4) {
    case 0: return join_quarter<0>(rows, before, is_last, bits);
    case 1: return join_quarter<1>(rows, before, is_last, bits);
    case 2: return join_quarter<2>(rows, before, is_last, bits);
    default: return join_quarter<3>(rows, before, is_last, bits);
  }
}

__device__ __forceinline__ std::uint32_t get_word(const Block& block, std::uint32_t i) {
  return i < 2 ? (i == 0 ? block.words[0] : block.words[1]) : (i == 2 ? block.words[2] : block.words[3]);
}

// Bytes [begin, 16) of an aligned word. begin: 1 to 15.
__device__ __forceinline__ void store_end_of_word(std::uint8_t* word, std::uint32_t begin, const Block& block) {
#pragma unroll
  for (std::uint32_t i = 1; i < 4; ++i) {
    if (4 * i >= begin) reinterpret_cast<std::uint32_t*>(word)[i] = block.words[i];
  }
  const std::uint32_t part = get_word(block, begin / 4);
#pragma unroll
  for (std::uint32_t i = 1; i < 4; ++i) {
    if (begin % 4 != 0 && i >= begin % 4) word[begin / 4 * 4 + i] = static_cast<std::uint8_t>(part >> (8 * i));
  }
}

// Bytes [0, end) of an aligned word. end: 1 to 15.
__device__ __forceinline__ void store_begin_of_word(std::uint8_t* word, std::uint32_t end, const Block& block) {
#pragma unroll
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (4 * i + 4 <= end) reinterpret_cast<std::uint32_t*>(word)[i] = block.words[i];
  }
  const std::uint32_t part = get_word(block, end / 4);
#pragma unroll
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (i < end % 4) word[end / 4 * 4 + i] = static_cast<std::uint8_t>(part >> (8 * i));
  }
}

// A whole block at any address, by a single lane: by the words that have a byte of it, as above.
__device__ __forceinline__ Block load_anywhere(const std::uint8_t* p) {
  const std::uint32_t past = reinterpret_cast<std::uintptr_t>(p) % 16;
  const Block first = load_aligned(p - past);
  return past == 0 ? first : join_at(first, load_aligned(p - past + 16), past);
}

// By words of 4 bytes, and bytes at both ends.
__device__ __forceinline__ void store_anywhere(std::uint8_t* p, const Block& block) {
  const std::uint32_t past = reinterpret_cast<std::uintptr_t>(p) % 4;
  auto* const words = reinterpret_cast<std::uint32_t*>(p - past);
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (i > 0) words[i] = past == 0 ? block.words[i] : __funnelshift_l(block.words[i - 1], block.words[i], 8 * past);
  }
  if (past == 0) {
    words[0] = block.words[0];
    return;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (i < 4 - past) p[i] = static_cast<std::uint8_t>(block.words[0] >> (8 * i));
  }
  const std::uint32_t end = block.words[3] >> (32 - 8 * past);  // its last `past` bytes
#pragma unroll
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (i < past) p[16 - past + i] = static_cast<std::uint8_t>(end >> (8 * i));
  }
}

// A warp's rows in a run of `count` whole blocks: row 0 has blocks first to first + 31, of which the lane has number
// first + column. Rows may go over both ends of the run, which has a block or more: first may be negative, as a number
// of 32 bits. All lanes take part in all functions, with the same first and count; pointers are to block 0 of the run.
struct WarpRows {
  std::uint32_t first;
  std::uint32_t column;
  std::uint32_t count;

  __device__ __forceinline__ bool is_last() const { return column == warp_len - 1; }

  // The rows from number n on.
  __device__ __forceinline__ WarpRows from(std::uint32_t n) const { return {first + warp_len * n, column, count}; }

  // Loads N rows. Blocks that are not of the run have any value.
  template <int N>
  __device__ __forceinline__ void load(const std::uint8_t* in, Block (&rows)[N]) const {
    const std::uint32_t past = bytes_past_word(in);
    const std::uint32_t own = first + column;
    const std::uint8_t* const words = in - past + 16 * std::int64_t{static_cast<std::int32_t>(own)};
    if (past == 0) {
#pragma unroll
      for (std::uint32_t n = 0; n < N; ++n) {
        rows[n] = own + warp_len * n < count ? load_aligned(words + 16 * warp_len * n) : Block{};
      }
      return;
    }
    // The second word of each block, and the first of the first block. Words 0 to `count` have bytes of the run.
#pragma unroll
    for (std::uint32_t n = 0; n < N; ++n) {
      rows[n] = own + warp_len * n + 1 <= count ? load_aligned(words + 16 * (warp_len * n + 1)) : Block{};
    }
    const Block before = is_last() && first <= count ? load_aligned(words - 16 * (warp_len - 1)) : Block{};
    join_rows(rows, before, is_last(), past);
  }

  // Stores N rows, without the blocks that are not of the run. It changes them.
  template <int N>
  __device__ __forceinline__ void store(std::uint8_t* out, Block (&rows)[N]) const {
    const std::uint32_t past = bytes_past_word(out);
    const std::uint32_t own = first + column;
    std::uint8_t* const words = out - past + 16 * std::int64_t{static_cast<std::int32_t>(own)};
    if (past == 0) {
#pragma unroll
      for (std::uint32_t n = 0; n < N; ++n) {
        if (own + warp_len * n < count) store_aligned(words + 16 * warp_len * n, rows[n]);
      }
      return;
    }
    const bool is_full = first <= count && first + warp_len * N <= count;
    // The first block and the last, where the lane has them. Parts of words: of the first block all that is in its
    // first word, of the last what is in its second.
    bool has_head = column == 0;
    bool has_tail = is_last();
    std::uint32_t head_row = 0;
    std::uint32_t tail_row = N - 1;
    Block tail = rows[N - 1];
    if (!is_full) {
      has_head = has_tail = false;
#pragma unroll
      for (std::uint32_t n = 0; n < N; ++n) {
        const std::uint32_t block = own + warp_len * n;
        if (block < count && (block == 0 || (n == 0 && column == 0))) {
          has_head = true;
          head_row = n;
        }
        if (block < count && (block == count - 1 || (n == N - 1 && is_last()))) {
          has_tail = true;
          tail_row = n;
          tail = rows[n];
        }
      }
    }
    tail = join_at(tail, Block{}, 16 - past);
    join_rows(rows, rows[0], is_last(), 16 - past);
    Block head = rows[0];
#pragma unroll
    for (std::uint32_t n = 0; n < N; ++n) {
      const std::uint32_t block = own + warp_len * n;
      if (n > 0 && n == head_row) head = rows[n];
      if (block - 1 < count - 1 && (n > 0 || column != 0)) store_aligned(words + 16 * warp_len * n, rows[n]);
    }
    if (has_head) store_end_of_word(words + 16 * warp_len * head_row, past, head);
    if (has_tail) store_begin_of_word(words + 16 * (warp_len * tail_row + 1), past, tail);
  }
};

}  // namespace warpcipher::cuda
