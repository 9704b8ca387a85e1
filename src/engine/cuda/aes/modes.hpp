// SPDX-License-Identifier: Apache-2.0
// The parallel modes, and what the host passes to each in addition to messages and keys (modes.cuh).
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/block.hpp"

namespace warpcipher::cuda::lane_table {

inline constexpr std::uint32_t blocks_in_flight = 4;  // of a lane

template <bool Inverse>
struct EcbMode;
using EcbEncryption = EcbMode<false>;
using EcbDecryption = EcbMode<true>;
struct CbcDecryption;
struct CfbDecryption;
struct Cfb8Decryption;
struct CounterMode;
struct KeyStreamMode;
struct LittleEndianCounterMode;
struct UnalignedCounterMode;  // of texts at any address
struct UnalignedLittleEndianCounterMode;
template <bool Inverse>
struct XtsMode;

struct NoParameters {};

struct ChainParameters {
  const Block* saved_ciphertext;  // the block before each tile of the group; nullptr: still in `in`
};

struct CounterParameters {
  bool wrap_32;                   // inc32 of SP 800-38D rather than a counter of the whole block (CounterMode)
  const std::uint32_t* verdicts;  // of each message: 0 writes zeros in place of text; nullptr: all are good
  std::uint32_t stride = 1;       // from one tile of a warp to its next in the message

  void set_stride(std::uint64_t tiles) { stride = static_cast<std::uint32_t>(tiles); }
};

}  // namespace warpcipher::cuda::lane_table
