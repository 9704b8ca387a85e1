// SPDX-License-Identifier: Apache-2.0
// How a file's chunks are sealed, and chunks of a file as columns: an array of each property, as in
// message/message.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "message/message.hpp"

namespace warpcipher {

inline constexpr std::uint64_t most_offset = std::uint64_t{1} << 62;  // of a file: far from the end of off_t

// Chunks that a core checks or lays out at once: fewer take less time than another core takes to wake.
inline constexpr std::size_t chunks_at_once = 16384;

// Authentication by HMAC for a cipher that has none: encrypt-then-MAC, over IV || ciphertext, cut to tag_len bytes.
struct ChunkMac {
  std::string_view hash;  // "sha1", "sha256" or "sha512"; empty: the cipher is an AEAD
  std::span<const std::uint8_t> key;
};

// Bytes of each chunk that follow from its number: `base`, with these written into it.
struct ChunkPattern {
  std::span<const std::uint8_t> base;
  int number_at = -1;  // where the chunk's number goes, 32 bits; -1: nowhere
  bool is_big_endian = false;
  int nonce_at = -1;           // the nonce, iv_len bytes; -1: nowhere
  std::size_t length_len = 0;  // the end is the length of the chunk's text, big-endian, in so many bytes
};

// How chunks are sealed: what a format says once. A regular file's chunks have one length, but the first, which may be
// shorter by first_lacks, and the final one. Their heads, nonces and associated data follow from their numbers, and
// these fields say how; for other chunks they stay as they are, and columns say the same. All lengths in bytes.
//
//   header | chunk 0 | chunk 1 | ... | final chunk           chunk = [head or IV] ciphertext tag
//
//   number(i) = number_from + i
//   nonce(i)  = nonce_base XOR (number << counter_shift) XOR (i is the final chunk ? 1 << final_shift : 0), big-endian
struct Sealing {
  std::span<const Key* const> keys;  // of one algorithm
  std::size_t iv_len = 0;
  std::size_t tag_len = 0;
  ChunkMac mac;
  bool is_authenticated = true;  // false: CTR without tags, in which a change goes unnoticed
  std::uint64_t header_len = 0;
  std::uint64_t chunk_len = 0;  // of plaintext
  std::uint64_t first_lacks = 0;
  std::span<const std::uint8_t> nonce_base;  // iv_len bytes, at most 16; empty: in front of each chunk, and random
  unsigned counter_shift = 0;                // a multiple of 8
  int final_shift = -1;                      // -1: the final chunk is not marked
  std::uint64_t number_from = 0;
  std::optional<ChunkPattern> aad_rule, final_aad_rule;    // absent: there is none; final: as of others
  std::optional<ChunkPattern> head_rule, final_head_rule;  // likewise; nothing hides the head, and it must be right

  const Algorithm& algorithm() const { return keys[0]->algorithm(); }
  bool has_mac() const { return !mac.hash.empty(); }

  const std::optional<ChunkPattern>& aad_rule_of(bool is_final) const {
    return is_final && final_aad_rule ? final_aad_rule : aad_rule;
  }
  const std::optional<ChunkPattern>& head_rule_of(bool is_final) const {
    return is_final && final_head_rule ? final_head_rule : head_rule;
  }

  // Of a regular file: what a chunk has more in it than plaintext, and where chunk i begins in the plaintext.
  std::uint64_t overhead(bool is_final = false) const {
    return (head_rule ? head_rule_of(is_final)->base.size() : nonce_base.empty() ? iv_len : 0) + tag_len;
  }
  std::uint64_t begin_of(std::uint64_t i) const { return i == 0 ? 0 : i * chunk_len - first_lacks; }
};

// The encrypted bytes: a file that takes pread(), or memory that holds a part of one.
struct ChunkSource {
  int descriptor = -1;
  std::span<const std::uint8_t> bytes;  // where descriptor is -1: the file from offset `begin` on
  std::uint64_t begin = 0;
};

// Chunks, however they are used. Spans that may be absent are empty then. Everything is borrowed for a call, and nobody
// changes it meanwhile.
struct SealedChunks : Sealing {
  std::size_t count = 0;
  std::uint64_t first_number = 0;               // what errors call the first
  std::span<const std::uint32_t> key_index;     // absent: all take the first key
  std::span<const std::uint64_t> file_offsets;  // of the first byte
  std::span<const std::uint64_t> lengths;       // of plaintext, so of ciphertext
  std::span<const std::uint8_t> ivs;            // iv_len bytes each
  // Bytes in front of each ciphertext, back to back: head_len bytes each, and what is left for the last chunk.
  std::span<const std::uint8_t> heads;
  std::size_t head_len = 0;
  std::span<const std::uint8_t> aad;  // without ranges all of it for every chunk
  std::span<const std::uint64_t> aad_offsets;
  std::span<const std::uint64_t> aad_lengths;

  std::span<const std::uint8_t> head(std::size_t i) const {
    return heads.subspan(i * head_len, i + 1 == count ? heads.size() - i * head_len : head_len);
  }
  std::span<const std::uint8_t> aad_of(std::size_t i) const {
    return aad_offsets.empty() ? aad : aad.subspan(aad_offsets[i], aad_lengths[i]);
  }
  bool is_plain() const { return keys.empty(); }  // not encrypted, as read_plain() has them
  const Key& key(std::size_t i) const { return *keys[key_index.empty() ? 0 : key_index[i]]; }

  // Chunk i in host memory as an engine takes it. tag: of an AEAD.
  Message message(std::size_t i, Direction direction, const std::uint8_t* in, std::uint8_t* out, const std::uint8_t* iv,
                  std::uint8_t* tag) const;
};

// Chunks to read, and where their plaintext goes. A chunk lies in the file as
//
//   [IV]  ciphertext  [tag]           IV: where `ivs` is empty and iv_len is not 0;  tag: where `tags` is empty
//   ^ file_offsets[i]                 a head in place of the IV: where `heads` has it
//
// All but `out` lies in host memory, and none of it in `out`.
struct FileChunks : SealedChunks {
  ChunkSource source;
  std::span<const std::uint8_t> tags;  // tag_len bytes each
  Memory memory = Memory::host;        // of out; device: the current one
  std::span<std::uint8_t> out;
  std::span<const std::uint64_t> out_offsets;  // of the bytes wanted; absent: back to back
  // The bytes wanted of a chunk: takes[i] from skips[i] on. Absent: all of each.
  std::span<const std::uint64_t> skips;
  std::span<const std::uint64_t> takes;
  std::uint64_t wanted = 0;  // bytes in all, where RegularChunks made the columns, which are right then; else 0

  bool has_iv_in_file() const { return ivs.empty() && iv_len != 0; }
  std::size_t front_len(std::size_t i) const { return has_iv_in_file() ? iv_len : head(i).size(); }
  std::size_t tag_len_in_file() const { return tags.empty() ? tag_len : 0; }
  std::uint64_t len_in_file(std::size_t i) const { return front_len(i) + lengths[i] + tag_len_in_file(); }

  std::uint64_t skip(std::size_t i) const { return skips.empty() ? 0 : skips[i]; }
  std::uint64_t take(std::size_t i) const { return takes.empty() ? lengths[i] : takes[i]; }
  bool is_whole(std::size_t i) const { return take(i) == lengths[i]; }
};

// Throws Error{invalid_argument} where the columns' lengths, the keys or their numbers cannot be right, in either
// direction.
void check_sealed_chunks(const SealedChunks& chunks);

// Throws Error{invalid_argument} that names the chunk where the columns cannot be right: lengths of columns, a range
// outside of its buffer, outputs that overlap, anything that is read and overlaps `out`, an algorithm that
// authenticates nothing, a key index.
void check_file_chunks(const FileChunks& chunks);

// Chunks of a regular file as columns, made by all cores.
class RegularChunks {
 public:
  // The chunks of a whole file, of the file's text_len bytes of plaintext, that hold [begin, begin + len); none for no
  // bytes. Throws Error{invalid_argument} where the range or the layout cannot be.
  RegularChunks(const Sealing& sealing, std::uint64_t text_len, std::uint64_t chunks_of_file, std::uint64_t begin,
                std::uint64_t len);

  // `count` chunks from `first` on, which have len bytes of plaintext; is_final: the file ends with them. The final
  // one may be empty.
  static RegularChunks whole(const Sealing& sealing, std::uint64_t first, std::size_t count, std::uint64_t len,
                             bool is_final);

  // With the sealing and all columns that the rules give; they stay for as long as this object.
  const FileChunks& chunks() const { return chunks_; }

 private:
  RegularChunks(const Sealing& sealing, std::uint64_t text_len, std::uint64_t chunks_of_file);

  void make_columns(std::uint64_t first, std::size_t count, bool in_parts);
  void make(std::uint64_t i);
  void write(const ChunkPattern& pattern, std::uint64_t i, std::uint8_t* out) const;
  bool is_final(std::uint64_t i) const { return i + 1 == chunks_of_file_; }
  std::uint64_t length_of(std::uint64_t i) const;

  const std::uint64_t text_len_, chunks_of_file_;
  FileChunks chunks_;
  std::vector<std::unique_ptr<std::uint64_t[]>> memory_;  // of its columns
};

}  // namespace warpcipher
