// SPDX-License-Identifier: Apache-2.0
// The authentication half of GCM (SP 800-38D) on the GPU: the interface, the same for all algorithms of GHASH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cipher/gf128.hpp"
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher {
class Key;
struct Message;
}  // namespace warpcipher

namespace warpcipher::cuda::ghash {

// The short messages of a batch of long and short ones, which tensor_rows hashes; the algorithm of the batch is for the
// others, and tensor_rows if there are none.
struct RowMessages {
  std::uint64_t messages;
  std::uint64_t blocks;
  std::uint64_t least_chunked;  // blocks of the messages that are not among them
};

// Messages whose views are on the device. Pointers are to device memory.
struct HashBatch {
  const HashView* views;
  const Block* masks;                        // E(J0) of each message
  const gf128::Element* hash_keys;           // H of each key; not read if the host knows the keys
  const std::uint64_t* first_chunk;          // of each message, and at the end `chunks`
  std::span<const Key* const> keys_of_host;  // all keys by number, if the host has derived their H; or none
  GhashAlgorithm algorithm;
  std::uint64_t chunk_blocks;  // of all views, as chunk_blocks_for() said
  std::uint64_t chunks;
  Work work;
  const gf128::Element* only_hash_key = nullptr;  // of one key, in host memory: then it has no other
  Block* polyvals = nullptr;                      // not nullptr: as ChunkList
  bool is_aligned = false;                        // as ChunkList
  RowMessages in_rows{};                          // of one key, where some have no chunks
  // Of few messages: powers of keys_of_host as fill_powers_of_host() makes them, and an element for each chunk.
  const gf128::Element* powers = nullptr;
  gf128::Element* sums = nullptr;
  const gf128::Element* joining = nullptr;  // as ChunkList
};

// How many powers of all keys a batch needs, and the powers, of keys that the host knows; after those of a single
// message come ChunkList::joining, if it is long. 0: the GPU makes them.
std::size_t powers_of_host(GhashAlgorithm algorithm, const Work& work, std::uint64_t chunk_blocks);
// Of `batch`, whose powers are to be at `on_device`.
void fill_powers_of_host(gf128::Element* powers, HashBatch& batch, const gf128::Element* on_device);

// The best number of blocks in a chunk for a batch.
std::uint64_t chunk_blocks_for(const Device& device, GhashAlgorithm algorithm, const Work& work);

// The same for a batch of about `blocks` blocks, before its messages are known.
std::uint64_t estimate_chunk_blocks(const Device& device, std::uint64_t blocks, std::uint64_t messages);

// Hashes AAD and text of every message; with `polyvals` that is all. verdicts == nullptr: writes the tags. Else
// compares with the tags in constant time and sets verdicts[i] (device memory, one word for each message) to 1 if they
// match, else to 0.
void authenticate(const Device& device, Stream stream, const HashBatch& batch, std::uint32_t* verdicts);

// The same for one message. algorithm: for work_of(). mask: E(J0).
void authenticate_one(const Device& device, Stream stream, GhashAlgorithm algorithm, const Message& message,
                      const Block& mask, std::uint32_t* verdicts);

// One message as work by itself.
Work work_of(const Message& message);

// The view of a message without its AAD, which is in host memory, and without chunks.
HashView hash_view_of(const Message& message);

}  // namespace warpcipher::cuda::ghash
