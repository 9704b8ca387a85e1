// SPDX-License-Identifier: Apache-2.0
// The serial modes, with one message in each lane: CBC, CFB and CFB8 encryption, and OFB (SP 800-38A, sections 6.2 to
// 6.4), all in one kernel. Messages come sorted by length, so that the lanes of a warp end together.
#pragma once

#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda::lane_table {

// Cipher: `static constexpr std::uint32_t block_len` (8 or 16) and `Block operator()(const Block&) const`. Blocks of 8
// bytes take the first two words.

template <class Cipher>
__device__ __forceinline__ std::uint32_t part_len(std::uint64_t len, std::uint64_t offset) {
  const std::uint64_t left = len > offset ? len - offset : 0;
  return left < Cipher::block_len ? static_cast<std::uint32_t>(left) : Cipher::block_len;
}

template <class Cipher>
__device__ __forceinline__ Block load_part(const MessageView& view, std::uint64_t offset) {
  const std::uint8_t* p = global(view.in) + offset;
  const std::uint32_t len = part_len<Cipher>(view.in_len, offset);
  const bool whole = len == Cipher::block_len && reinterpret_cast<std::uintptr_t>(p) % Cipher::block_len == 0;
  if constexpr (Cipher::block_len == 8) {
    if (whole) {
      const uint2 v = *reinterpret_cast<const uint2*>(p);
      return {{v.x, v.y, 0, 0}};
    }
    Block block = load_bytes(p, len, view.pad);
    block.words[2] = block.words[3] = 0;
    return block;
  } else {
    return whole ? load_aligned(p) : load_bytes(p, len, view.pad);
  }
}

template <class Cipher>
__device__ __forceinline__ void store_part(const MessageView& view, std::uint64_t offset, const Block& block) {
  std::uint8_t* p = global(view.out) + offset;
  const std::uint32_t len = part_len<Cipher>(view.out_len, offset);
  if (len != Cipher::block_len || reinterpret_cast<std::uintptr_t>(p) % Cipher::block_len != 0) {
    store_bytes(p, len, block);
  } else if constexpr (Cipher::block_len == 8) {
    *reinterpret_cast<uint2*>(p) = make_uint2(block.words[0], block.words[1]);
  } else {
    store_aligned(p, block);
  }
}

// Masks, all ones or zero, that say where the text of a block is added:
//
//   output = E(chain ^ (text & into_cipher))
//   out    = output ^ (text & into_output)
//   chain  = output ^ (text & into_chain)
struct Feedback {
  std::uint32_t into_cipher;
  std::uint32_t into_output;
  std::uint32_t into_chain;
  bool by_bytes;  // CFB8: only the first byte of the output is used, and out is shifted into the chain
};

inline Feedback feedback_of(Mode mode) {
  constexpr std::uint32_t all = 0xffffffffu;
  switch (mode) {
    case Mode::cbc: return {all, 0, 0, false};
    case Mode::cfb: return {0, all, all, false};
    case Mode::cfb8: return {0, all, 0, true};
    case Mode::ofb: return {0, all, 0, false};
    default: throw_failure("this mode is not serial");
  }
}

__device__ __forceinline__ Block mask(const Block& block, std::uint32_t bits) {
  return {{block.words[0] & bits, block.words[1] & bits, block.words[2] & bits, block.words[3] & bits}};
}

// The next block of a message; not for CFB8.
template <class Cipher>
__device__ __forceinline__ Block next_block(const Cipher& cipher, const Feedback& feedback, const Block& text,
                                            Block& chain) {
  const Block output = cipher(chain ^ mask(text, feedback.into_cipher));
  chain = output ^ mask(text, feedback.into_chain);
  return output ^ mask(text, feedback.into_output);
}

// Shifts the register of CFB8 by a byte.
template <std::uint32_t Words>
__device__ __forceinline__ void shift_in(Block& chain, std::uint32_t byte) {
#pragma unroll
  for (std::uint32_t w = 0; w + 1 < Words; ++w) {
    chain.words[w] = __funnelshift_r(chain.words[w], chain.words[w + 1], 8);
  }
  chain.words[Words - 1] = chain.words[Words - 1] >> 8 | byte << 24;
}

// A message from `offset` on, whatever its mode, alignment and length.
template <class Cipher>
__device__ __forceinline__ void run_message(const Cipher& cipher, const Feedback& feedback, const MessageView& view,
                                            std::uint64_t offset, Block chain) {
#pragma unroll 1
  for (; offset < view.out_len; offset += feedback.by_bytes ? 1 : Cipher::block_len) {
    Block text{};
    if (feedback.by_bytes) {
      text.words[0] = global(view.in)[offset];
    } else {
      text = load_part<Cipher>(view, offset);
    }
    const Block before = chain;
    const Block out = next_block(cipher, feedback, text, chain);
    if (feedback.by_bytes) {
      chain = before;
      shift_in<Cipher::block_len / 4>(chain, out.words[0] & 0xffu);
      global(view.out)[offset] = static_cast<std::uint8_t>(out.words[0]);
    } else {
      store_part<Cipher>(view, offset, out);
    }
  }
}

inline constexpr std::uint32_t least_serial_warps = 8;  // of a block: with fewer, filling the tables takes too long

// A block for each multiprocessor as long as there are warps for it.
inline LaunchConfiguration serial_configuration(const Device& device, std::uint32_t messages,
                                                std::uint32_t most_warps) {
  const std::uint32_t warps = (messages + warp_len - 1) / warp_len;
  const std::uint32_t blocks = warps < device.multiprocessors ? warps : device.multiprocessors;
  std::uint32_t warps_of_block = (warps + blocks - 1) / blocks;
  if (warps_of_block > most_warps) warps_of_block = most_warps;
  if (warps_of_block < least_serial_warps) warps_of_block = least_serial_warps;
  return {blocks, warps_of_block * warp_len};
}

// Calls body(first) for each group of 32 messages, with the number of its first message, in all lanes of a warp.
template <class Body>
__device__ __forceinline__ void for_each_group(std::uint32_t messages, Body&& body) {
  const std::uint32_t groups = (messages + warp_len - 1) / warp_len;
  const std::uint32_t stride = gridDim.x * (blockDim.x / warp_len);
  for (std::uint32_t group = blockIdx.x + gridDim.x * warp_index(); group < groups; group += stride) {
    body(group * warp_len);
  }
}

}  // namespace warpcipher::cuda::lane_table
