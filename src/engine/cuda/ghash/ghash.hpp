// SPDX-License-Identifier: Apache-2.0
// The authentication half of GCM (SP 800-38D) on the GPU: what the engine calls, whatever computes GHASH inside.
#pragma once

#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher {
struct Message;
}

namespace warpcipher::cuda {
class AesBatch;
struct Block;
struct GroupRun;
}  // namespace warpcipher::cuda

namespace warpcipher::cuda::ghash {

struct HashView;

// J0 of a message (section 7.1, step 2), computed on the host.
void first_counter(const Message& message, std::uint8_t (&counter)[16]);

// Hashes AAD and ciphertext (encryption: at `out`, decryption: at `in`) of every message of a GCM group. batch: the
// group's, nullptr for a single message. verdicts == nullptr: writes the tags. Else compares with the tags in constant
// time and sets verdicts[i] (device memory, one word a message of the group) to 1 where they match, else 0.
void authenticate(const GroupRun& run, const AesBatch* batch, std::uint32_t* verdicts);

// Messages whose views are on the device already.
struct DeviceBatch {
  const HashView* views;
  const Block* masks;                // E(J0) of each message
  const gf128::Element* hash_keys;   // H of each key
  const std::uint64_t* first_chunk;  // of each message, and at the end `chunks`
  std::uint32_t messages;
  std::uint32_t keys;
  std::uint64_t chunk_blocks;  // of all views, as chunk_blocks_for() said
  std::uint64_t chunks;
  std::uint64_t blocks;       // of AAD and text of all messages
  std::uint64_t most_blocks;  // of one
};

// The blocks of a chunk that suit a batch of about so many blocks: before it is known what its messages are like.
std::uint64_t chunk_blocks_for(const Device& device, std::uint64_t blocks);

// As authenticate() of a group.
void authenticate(const Device& device, Stream stream, const DeviceBatch& batch, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::ghash
