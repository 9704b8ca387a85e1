// SPDX-License-Identifier: Apache-2.0
// A message as kernels see it, and as the host fills it in.
#pragma once

#include <cstdint>

#include "cipher/gf128.hpp"
#include "core/host_device.hpp"
#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda {

struct MessageView {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint64_t in_len;
  std::uint64_t out_len;
  std::uint64_t units;
  Block start;        // IV, first counter block or first tweak
  std::uint32_t pad;  // the value of the bytes from in_len to out_len
  std::uint32_t key;  // its number in the group's array of schedules
};

// Whether the text and where it goes lie at multiples of 16.
WARPCIPHER_HD inline bool is_aligned(const MessageView& view) {
  return (reinterpret_cast<std::uintptr_t>(view.in) | reinterpret_cast<std::uintptr_t>(view.out)) % 16 == 0;
}

// A tile is up to this many consecutive units of one message.
inline constexpr std::uint32_t tile_units = 256;

// Tiles of a launch are counted in 32 bits, with room for the stride of a warp: 1 TiB of CFB8, 16 TiB of the others.
inline constexpr std::uint64_t most_tiles = 0xffff0000u;

// Messages cut into tiles. Pointers are to device memory.
struct TileList {
  const MessageView* views;
  const std::uint64_t* first_tile;  // prefix sums, one more than messages
  std::uint64_t tiles;
  std::uint32_t messages;
  std::uint32_t lacks_ends = 0;  // not 0: tiles have units_before_end() of each message, in a counter mode
};

// The end of a message in a counter mode: the few blocks after the last whole tile, or all of a message that has no
// more, and the part of a block after the others. Tiles begin where the last byte of the counter is 0, so a text of
// whole tiles has such an end too. As tiles, ends would take almost as long as whole ones; lanes of a warp take several
// messages' (packed.cuh).
inline constexpr std::uint32_t most_blocks_of_end = 64;

// lead: the last byte of the first counter.
WARPCIPHER_HD constexpr std::uint64_t units_before_end(std::uint64_t text_len, std::uint32_t lead) {
  const std::uint64_t whole = text_len / 16;
  const std::uint64_t after = (lead + whole) % tile_units;
  const std::uint64_t rest = after < whole ? after : whole;
  return rest <= most_blocks_of_end ? whole - rest : whole;
}

// The tiles' facts of a message in a counter mode. Both are computed from the length, so that no load depends on
// lacks_ends.
WARPCIPHER_HD constexpr std::uint64_t units_of_tiles(std::uint64_t text_len, std::uint32_t lead, bool lacks_ends) {
  return lacks_ends ? units_before_end(text_len, lead) : (text_len + 15) / 16;
}

// A round key is four little-endian columns. Key k has round keys 15 k to 15 k + 14.
inline constexpr std::uint32_t most_round_keys = 15;  // AES-256: 14 rounds

// A message as GHASH sees it: AAD and ciphertext (GCM-SIV: plaintext), each padded with zeros to blocks, are one
// sequence of blocks X_0 ... X_n-1. It is cut from the end into chunks of c blocks, so that only the first may be
// shorter.
struct HashView {
  const std::uint8_t* aad;   // device memory
  const std::uint8_t* text;  // the hashed bytes
  std::uint8_t* tag;         // nullptr: of a wrong message of columns, which will not run
  std::uint64_t aad_len;
  std::uint64_t text_len;
  std::uint64_t chunk_blocks;
  std::uint32_t tag_len;
  std::uint32_t key;  // its number in the group's table of powers
  // E(J0), unless an array of masks has it. GCM-SIV: the given tag, where Message::compute_tag is set.
  // ChaCha20-Poly1305: see chacha::NonceForm.
  Block mask;

  WARPCIPHER_HD std::uint64_t aad_blocks() const { return (aad_len + 15) / 16; }
  WARPCIPHER_HD std::uint64_t blocks() const { return aad_blocks() + (text_len + 15) / 16; }
  WARPCIPHER_HD gf128::Element lengths() const { return {8 * aad_len, 8 * text_len}; }  // in bits: the last block
  WARPCIPHER_HD std::uint64_t chunks() const { return (blocks() + chunk_blocks - 1) / chunk_blocks; }
};

}  // namespace warpcipher::cuda
