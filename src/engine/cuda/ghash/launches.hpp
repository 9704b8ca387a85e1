// SPDX-License-Identifier: Apache-2.0
// The chunks of a batch's messages, as the kernels of GHASH find them, and the powers of the hash keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::ghash {

// The algorithms of GHASH, and each one's needs of a device. choose.hpp chooses. Host code only, so that the
// choice can be tested without a GPU.
enum class GhashAlgorithm : std::uint8_t {
  few_lanes,          // carryless products on the multiply pipe, four lanes for each message: many short messages
  tensor_rows,        // many short messages, by the matrices of one key (tensor.cu)
  scalar,             // as few_lanes, with a warp for each chunk: any GPU, few texts that are not long
  tensor_one_key,     // the matrices of one key, shared by the warps of a block
  tensor_warpgroups,  // likewise, by asynchronous products (warpgroup.hpp): long texts on compute capability 9.0
  tensor_many_keys,   // every warp has its own
};

// GHASH's facts of a group. Blocks are of AAD and text.
struct Work {
  std::size_t messages;
  std::size_t keys;
  std::uint64_t blocks;
  std::uint64_t most_blocks;  // of one message
};

// For longer messages, other algorithms are faster than few_lanes.
inline constexpr std::uint64_t most_blocks_of_short = 512;

// The same in a batch of long and short messages, of which tensor_rows takes the short ones, in the order of length.
// One less than a power of two (inputs/order.hpp).
inline constexpr std::uint64_t most_blocks_of_rows = 1023;

// Shared memory of a block, in bytes. tensor.cu and warpgroup_sm90a.cu check that their kernels use as much.
inline constexpr std::size_t one_key_shared_len = 100864;
inline constexpr std::size_t many_keys_shared_len = 162816;
inline constexpr std::size_t warpgroup_shared_len = 70144;

constexpr std::size_t tensor_shared_len(std::size_t keys) {
  return keys == 1 ? one_key_shared_len : many_keys_shared_len;
}

// Whether the device can hash messages with that many keys on tensor cores.
inline bool has_tensor_ghash(const Device& device, std::size_t keys = 1) {
  return (device.major == 8 || device.major == 9) && device.shared_len >= tensor_shared_len(keys);
}

// Whether the device can hash by warpgroups.
inline bool has_warpgroup_products(const Device& device) {
  return device.major == 9 && device.minor == 0 && device.shared_len >= warpgroup_shared_len;
}

inline constexpr std::uint32_t joining_of_warps = 32;
inline constexpr std::uint32_t joining_powers = joining_of_warps + 16;

// The chunks of a group of messages. All pointers are to device memory.
struct ChunkList {
  const HashView* views;
  const Block* masks;                // E(J0) of each message, or nullptr
  const std::uint64_t* first_chunk;  // of each message, and at the end `chunks`
  std::uint32_t messages;
  std::uint32_t powers_of_key;
  std::uint32_t chunk_powers;
  // Powers of key k begin at powers_of_key * k: H^(2^j), or a PowerTable, which begins with them; from chunk_powers on
  // (H^c)^(2^j).
  const gf128::Element* powers;
  gf128::Element* sums;  // of each chunk, to be written
  std::uint64_t chunks;
  // The factors by which a block of threads joins the chunks of a single message, or nullptr. With P = H^c: P^(31-l)
  // for lane l of a warp; from joining_of_warps on, P^(32 (15-w)) for warp w.
  const gf128::Element* joining = nullptr;
  // Not nullptr: the hash is POLYVAL (RFC 8452, section 3), and each message's hash goes here, without its mask. Tags
  // are neither written nor checked.
  Block* polyvals = nullptr;
  bool is_aligned = false;          // all texts lie at multiples of 16
  std::uint64_t least_chunked = 0;  // messages of fewer blocks are hashed apart, without chunks
  const std::uint32_t* order = nullptr;  // tensor_rows: the messages to hash; nullptr: all

  WARPCIPHER_HD bool is_polyval() const { return polyvals != nullptr; }

  WARPCIPHER_HD const gf128::Element* powers_of(std::uint32_t key) const { return powers + std::size_t{powers_of_key} * key; }
};

// --- The powers of hash keys that the kernels of GHASH read: the host makes them for the keys that it knows, else the
// GPU. Which powers of a key a kernel reads: see ChunkList.
struct Powers {
  std::uint32_t squares;  // H^(2^j), j below this; or the length of a PowerTable
  std::uint32_t chunk_squares;
  std::uint64_t chunk_blocks;
  bool in_table = false;

  std::uint32_t of_key() const { return squares + chunk_squares; }
};

// Of one key, on the host. Not for Powers::in_table.
void fill_powers(gf128::Element* powers, gf128::Element hash_key, const Powers& wanted);

// The powers of ChunkList::joining, on the host. power: H^c.
void fill_joining(gf128::Element* joining, gf128::Element power);

// Of all keys, on the GPU: pointers to device memory.
void fill_powers_of_keys(const Device& device, Stream stream, gf128::Element* powers, const gf128::Element* hash_keys,
                         std::uint32_t keys, const Powers& wanted);

// --- The launches of GHASH on tensor cores.
struct ChunkList;

// H^(2^j) that the algorithms on tensor cores need of a key: j below this.
inline constexpr std::uint32_t tensor_squares = 10;

// Warps that hash chunks at the same time on tensor cores.
std::uint32_t tensor_warps(const Device& device, GhashAlgorithm algorithm);

void hash_on_tensor_cores(const Device& device, Stream stream, GhashAlgorithm algorithm, const ChunkList& list);

// GhashAlgorithm::tensor_rows, with tags. Of the list it reads views, masks, messages and tensor_squares powers.
// verdicts: as authenticate().
void hash_rows(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts);

// --- GHASH by warpgroups, for compute capability 9.0: compiled for sm_90a only.
// The blocks of a segment; chunks should be multiples of this.
inline constexpr std::uint64_t warpgroup_chunk_multiple = 512;

// Warps that hash chunks at the same time.
std::uint32_t warpgroup_warps(const Device& device);

// Hashes the chunks of messages of one key.
void hash_by_warpgroups(const Device& device, Stream stream, const ChunkList& list);

// --- The kernels of GHASH that run on any GPU: chunks by the scalar kernel, tags from the sums of chunks of any
// kernel, and many short messages as a whole. All pointers are to device memory.
struct ChunkList;

// Powers H^(2^j) of a key that hash_chunks() reads: j below this.
inline constexpr std::uint32_t scalar_squares = 6;
// Powers (H^c)^(2^j) that finish_tags() reads if a message has more than one chunk: j below this.
inline constexpr std::uint32_t chunk_squares_of_finish = 10;
// hash_short() reads H, H^2, H^4, and H^3 in place of the first power of a chunk.
inline constexpr std::uint32_t short_squares = 3;
inline constexpr std::uint64_t short_chunk_blocks = 3;

// Fills list.sums.
void hash_chunks(const Device& device, Stream stream, const ChunkList& list);

// Tags or verdicts from list.sums. most_blocks: of AAD and text of one message. verdicts: as authenticate().
void finish_tags(const Device& device, Stream stream, const ChunkList& list, std::uint64_t most_blocks,
                 std::uint64_t chunk_blocks, std::uint32_t* verdicts);

// Whether finish_tags() uses a block of threads for each message: then it can use ChunkList::joining.
bool needs_wide_finish(std::uint64_t most_blocks, std::uint64_t chunk_blocks);

// Messages of few blocks, from text to tags or verdicts.
void hash_short(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::ghash
