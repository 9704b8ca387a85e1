// SPDX-License-Identifier: Apache-2.0
// The serial modes, a message a lane: CBC, CFB and CFB8 encryption, and OFB (SP 800-38A, sections 6.2 to 6.4). The plan
// has sorted the messages by length, so that the lanes of a warp end together.
#pragma once

#include "engine/cuda/lane_table/form.hpp"
#include "engine/cuda/message_view.cuh"

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
  if (Cipher::block_len == 16 && len == 16 && (reinterpret_cast<std::uintptr_t>(p) & 15) == 0) return load_aligned(p);
  Block block = load_bytes(p, len, view.pad);
  if constexpr (Cipher::block_len == 8) block.words[2] = block.words[3] = 0;
  return block;
}

template <class Cipher>
__device__ __forceinline__ void store_part(const MessageView& view, std::uint64_t offset, const Block& block) {
  std::uint8_t* p = global(view.out) + offset;
  const std::uint32_t len = part_len<Cipher>(view.out_len, offset);
  if (Cipher::block_len == 16 && len == 16 && (reinterpret_cast<std::uintptr_t>(p) & 15) == 0) {
    store_aligned(p, block);
  } else {
    store_bytes(p, len, block);
  }
}

struct SerialCbc {
  template <class Cipher>
  static __device__ __forceinline__ void run(const Cipher& cipher, const MessageView& view) {
    Block chain = view.start;
#pragma unroll 1
    for (std::uint64_t offset = 0; offset < view.out_len; offset += Cipher::block_len) {
      chain = cipher(chain ^ load_part<Cipher>(view, offset));
      store_part<Cipher>(view, offset, chain);
    }
  }
};

struct SerialCfb {
  template <class Cipher>
  static __device__ __forceinline__ void run(const Cipher& cipher, const MessageView& view) {
    Block chain = view.start;
#pragma unroll 1
    for (std::uint64_t offset = 0; offset < view.out_len; offset += Cipher::block_len) {
      chain = cipher(chain) ^ load_part<Cipher>(view, offset);
      store_part<Cipher>(view, offset, chain);
    }
  }
};

struct SerialOfb {
  template <class Cipher>
  static __device__ __forceinline__ void run(const Cipher& cipher, const MessageView& view) {
    Block chain = view.start;
#pragma unroll 1
    for (std::uint64_t offset = 0; offset < view.out_len; offset += Cipher::block_len) {
      chain = cipher(chain);
      store_part<Cipher>(view, offset, chain ^ load_part<Cipher>(view, offset));
    }
  }
};

struct SerialCfb8 {
  template <class Cipher>
  static __device__ __forceinline__ void run(const Cipher& cipher, const MessageView& view) {
    constexpr std::uint32_t words = Cipher::block_len / 4;
    Block shift = view.start;
#pragma unroll 1
    for (std::uint64_t offset = 0; offset < view.out_len; ++offset) {
      const std::uint32_t ciphertext = (cipher(shift).words[0] ^ global(view.in)[offset]) & 0xffu;
      global(view.out)[offset] = static_cast<std::uint8_t>(ciphertext);
#pragma unroll
      for (std::uint32_t w = 0; w + 1 < words; ++w) {
        shift.words[w] = __funnelshift_r(shift.words[w], shift.words[w + 1], 8);
      }
      shift.words[words - 1] = shift.words[words - 1] >> 8 | ciphertext << 24;
    }
  }
};

// Schedules lie as a warp reads them: round r of the 32 messages of warp g starts at words[32 (rounds_len g + r)].
struct SerialSource {
  const MessageView* views;
  const void* schedules;
  std::uint32_t messages;
  std::uint32_t rounds;
};

// A block for each multiprocessor as long as there are warps for it.
inline LaunchShape serial_shape(const Device& device, std::uint32_t messages, std::size_t shared_len,
                                std::uint32_t most_warps = block_threads / warp_len) {
  const std::uint32_t warps = (messages + warp_len - 1) / warp_len;
  const std::uint32_t blocks = warps < device.multiprocessors ? warps : device.multiprocessors;
  std::uint32_t warps_of_block = (warps + blocks - 1) / blocks;
  if (warps_of_block > most_warps) warps_of_block = most_warps;
  if (warps_of_block < 8) warps_of_block = 8;  // to fill the tables sooner
  return {blocks, warps_of_block * warp_len, shared_len};
}

// Calls body(message) for the lane's messages.
template <class Body>
__device__ __forceinline__ void for_each_message(std::uint32_t messages, Body&& body) {
  const std::uint32_t warps = (messages + warp_len - 1) / warp_len;
  const std::uint32_t stride = gridDim.x * (blockDim.x / warp_len);
  for (std::uint32_t warp = blockIdx.x + gridDim.x * (threadIdx.x / warp_len); warp < warps; warp += stride) {
    const std::uint32_t message = warp * warp_len + lane_index();
    if (message < messages) body(message);
  }
}

// Calls use(Mode{}) for the serial mode of that name.
template <class Use>
void with_serial_mode(Mode mode, Use&& use) {
  switch (mode) {
    case Mode::cbc:
      return use(SerialCbc{});
    case Mode::cfb:
      return use(SerialCfb{});
    case Mode::cfb8:
      return use(SerialCfb8{});
    case Mode::ofb:
      return use(SerialOfb{});
    default:
      throw Error(Status::engine_failure, "this mode is not serial");
  }
}

// The same with one key for all: `words` is its schedule in host memory, KeyLayout::by_key.
struct SerialOneKey {
  const MessageView* views;
  const std::uint32_t* words;
  std::uint32_t messages;
  std::uint32_t rounds;
};

// Whether a group of messages of one key has a kernel that takes it as a parameter.
bool takes_one_key(const GroupRun& run);

void launch_serial_aes(const GroupRun& run, const SerialOneKey& source);
void launch_serial_aes(const GroupRun& run, const SerialSource& source);
void launch_serial_des(const GroupRun& run, const SerialSource& source);

// Rounds in the schedule of a DES message.
inline constexpr std::uint32_t serial_des_rounds = 48;

}  // namespace warpcipher::cuda::lane_table
