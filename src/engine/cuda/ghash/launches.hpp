// SPDX-License-Identifier: Apache-2.0
// The chunks of a batch's messages, as the kernels of GHASH find them, and the powers of the hash keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/ghash/algorithm.hpp"
#include "engine/cuda/inputs/hash_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::ghash {

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
