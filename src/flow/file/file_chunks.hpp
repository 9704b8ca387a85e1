// SPDX-License-Identifier: Apache-2.0
// Chunks of an encrypted file, each authenticated by itself, and where their plaintext goes. Columns: an array of each
// property, as in batch/columns.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "message/message.hpp"

namespace warpcipher {

inline constexpr std::uint64_t most_offset = std::uint64_t{1} << 62;  // of a file: far from the end of off_t

// Chunks that a core checks or lays out at once: fewer take less time than another core takes to wake.
inline constexpr std::size_t chunks_at_once = 16384;

// The encrypted bytes: a file that takes pread(), or memory that holds a part of one.
struct ChunkSource {
  int descriptor = -1;
  std::span<const std::uint8_t> bytes;  // where descriptor is -1: the file from offset `begin` on
  std::uint64_t begin = 0;
};

// Authentication by HMAC for a cipher that has none: encrypt-then-MAC, over IV || ciphertext, cut to tag_len bytes.
struct ChunkMac {
  std::string_view hash;  // "sha1", "sha256" or "sha512"; empty: the cipher is an AEAD
  std::span<const std::uint8_t> key;
};

// A chunk lies in the file as
//
//   [IV]  ciphertext  [tag]           IV: where `ivs` is empty and iv_len is not 0;  tag: where `tags` is empty
//   ^ file_offsets[i]
//
// Spans that may be absent are empty then. Everything is borrowed for the call, and nobody changes it meanwhile; all
// but `out` lies in host memory, and none of it in `out`.
struct FileChunks {
  ChunkSource source;
  std::size_t count = 0;
  std::uint64_t first_number = 0;               // what errors call the first
  std::span<const Key* const> keys;             // of one algorithm
  std::span<const std::uint32_t> key_index;     // absent: all take the first key
  std::span<const std::uint64_t> file_offsets;  // of the first byte
  std::span<const std::uint64_t> lengths;       // of plaintext, so of ciphertext
  std::span<const std::uint8_t> ivs;            // iv_len bytes each
  std::size_t iv_len = 0;
  std::span<const std::uint8_t> aad;  // without ranges all of it for every chunk
  std::span<const std::uint64_t> aad_offsets;
  std::span<const std::uint64_t> aad_lengths;
  std::span<const std::uint8_t> tags;  // tag_len bytes each
  std::size_t tag_len = 0;
  ChunkMac mac;
  Memory memory = Memory::host;  // of out; device: the current one
  std::span<std::uint8_t> out;
  std::span<const std::uint64_t> out_offsets;  // of the bytes wanted; absent: back to back
  // The bytes wanted of a chunk: takes[i] from skips[i] on. Absent: all of each.
  std::span<const std::uint64_t> skips;
  std::span<const std::uint64_t> takes;

  const Algorithm& algorithm() const { return keys[0]->algorithm(); }
  bool has_mac() const { return !mac.hash.empty(); }
  bool has_iv_in_file() const { return ivs.empty() && iv_len != 0; }
  std::size_t iv_len_in_file() const { return has_iv_in_file() ? iv_len : 0; }
  std::size_t tag_len_in_file() const { return tags.empty() ? tag_len : 0; }
  std::uint64_t len_in_file(std::size_t i) const { return iv_len_in_file() + lengths[i] + tag_len_in_file(); }

  std::uint64_t skip(std::size_t i) const { return skips.empty() ? 0 : skips[i]; }
  std::uint64_t take(std::size_t i) const { return takes.empty() ? lengths[i] : takes[i]; }
  bool is_whole(std::size_t i) const { return take(i) == lengths[i]; }

  const Key& key(std::size_t i) const { return *keys[key_index.empty() ? 0 : key_index[i]]; }
  std::span<const std::uint8_t> aad_of(std::size_t i) const {
    return aad_offsets.empty() ? aad : aad.subspan(aad_offsets[i], aad_lengths[i]);
  }
};

// Throws Error{invalid_argument} that names the chunk where the columns cannot be right: lengths of columns, a range
// outside of its buffer, outputs that overlap, anything that is read and overlaps `out`, an algorithm that
// authenticates nothing, a key index.
void check_file_chunks(const FileChunks& chunks);

}  // namespace warpcipher
