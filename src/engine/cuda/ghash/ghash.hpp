// SPDX-License-Identifier: Apache-2.0
// The authentication half of GCM (SP 800-38D) on the GPU: what the engine calls, whatever computes GHASH inside.
#pragma once

#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/launch.hpp"

namespace warpcipher::cuda {
class AesBatch;
struct Block;
}  // namespace warpcipher::cuda

namespace warpcipher::cuda::ghash {

struct HashView;

// J0 of a message (section 7.1, step 2), computed on the host.
void first_counter(const Message& message, std::uint8_t (&counter)[16]);

// Hashes AAD and ciphertext (encryption: at `out`, decryption: at `in`) of every message of a GCM group. batch: the
// group's, nullptr for a single message. verdicts == nullptr: writes the tags. Else compares with the tags in constant
// time and sets verdicts[i] (device memory, one word a message of the group) to 1 where they match, else 0.
void authenticate(const GroupRun& run, const AesBatch* batch, std::uint32_t* verdicts);

// Messages of at most most_blocks_of_short blocks of AAD and text, whose views are on the device already.
struct ShortBatch {
  const HashView* views;
  const Block* masks;               // E(J0) of each message
  const gf128::Element* hash_keys;  // H of each key
  std::uint32_t messages;
  std::uint32_t keys;
};

// As authenticate(). Longer messages come out right too, but late.
void authenticate_short(const Device& device, Stream stream, const ShortBatch& batch, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::ghash
