// SPDX-License-Identifier: Apache-2.0
// The encrypted modules of column chunks (Encryption.md 4.4, 5.1):
//
//   length u32 LE | nonce 12 | ciphertext | tag 16     the tag is missing in pages of AES_GCM_CTR_V1
//
// A chunk is header, page, header, page. Before anything is decrypted their lengths are all that is known, and they may
// lie. Columns (of 64-bit integers) have an entry a module, as batches take them. Errors as in compact.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "flow/file/sealing.hpp"
#include "parquet/compact.hpp"

namespace warpcipher::parquet {

using Column = std::vector<std::uint64_t>;

inline constexpr std::size_t length_size = 4;
inline constexpr std::size_t nonce_size = 12;
inline constexpr std::size_t head_size = length_size + nonce_size;
inline constexpr std::size_t tag_size = 16;
inline constexpr std::size_t gcm_overhead = length_size + nonce_size + tag_size;
inline constexpr std::uint64_t most_ordinal = 32767;

// A chunk as the file has it.
struct SealedChunk {
  std::uint64_t position = 0, size = 0;
  std::int16_t row_group = 0, column = 0;
  bool is_encrypted = false;
  bool dictionary = false;  // its first page is one
};

// The file could not be read: it ended (error is 0), or the system says why.
struct ReadError {
  std::uint64_t position;
  int error;
};

struct PageModules {
  struct Page {
    std::uint64_t position;              // of its header's module in the file
    std::uint64_t head_size, page_size;  // of the plaintexts
  };

  std::vector<Page> pages;
  std::vector<std::uint8_t> heads;   // the modules of the headers, back to back
  std::vector<std::uint8_t> nonces;  // of the pages, 12 bytes each
};

// Finds the modules of an encrypted chunk. Of a file only the headers are read, and what follows them. page_overhead:
// what encryption adds to a page. interrupted: called where a signal interrupted a read; may throw. Refuses more pages
// than the format numbers at once: nothing is authentic yet. Throws ReadError.
PageModules scan_pages(const ChunkSource& source, const SealedChunk& chunk, std::uint64_t page_overhead,
                       const std::function<void()>& interrupted);

// The AADs of the `count` headers and pages of a chunk, back to back: prefix || type || row group || column || page,
// without the page for the dictionary. prefix: the AAD prefix and the file's unique bytes.
struct PageAads {
  std::vector<std::uint8_t> heads, pages;
  Column sizes;  // of both
};
PageAads page_aads(Bytes prefix, std::int16_t row_group, std::int16_t column, bool dictionary, std::size_t count);

// Where the texts of modules go that are to be encrypted, and their IVs, of 16 bytes in counter mode (nonce || 1).
struct ModuleTexts {
  Column texts;
  std::vector<std::uint8_t> ivs;
};

// Writes the lengths and nonces of modules; lengths: of the plaintexts. nonces: 12 bytes each. Refuses modules that are
// not in `out`.
ModuleTexts write_heads(std::span<std::uint8_t> out, std::span<const std::uint64_t> modules,
                        std::span<const std::uint64_t> lengths, Bytes nonces, bool counter_mode);

// Page headers without encryption: the size of the page changes, the header's length does not.
//
// A page shrinks by what encryption added, and a shorter number may be a shorter varint. A header that keeps its length
// keeps everything after it in place, so where a page goes is known before its header is decrypted. Varints may be
// longer than they must: bits that say nothing fill them up. Padding behind a header, of parquet-java, goes: it may
// have more bytes than numbers can take.

// Mends the header of a page that was `sealed` bytes long and is `plain` now, and returns the header's bytes; what
// follows them in the text is padding. The CRC, which covered the ciphertext, is left out. Throws (compact.hpp) where
// the header speaks of another page: of another size, or another kind.
std::size_t shrink_header(std::span<std::uint8_t> text, std::uint64_t sealed, std::uint64_t plain, bool is_dictionary);

}  // namespace warpcipher::parquet
