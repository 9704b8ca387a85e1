// SPDX-License-Identifier: Apache-2.0
// The encrypted modules of column chunks, found by their lengths alone (Encryption.md 4.4, 5.1):
//
//   length u32 LE | nonce 12 | ciphertext | tag 16     the tag is missing in pages of AES_GCM_CTR_V1
//
// A chunk is header, page, header, page. Columns (of 64-bit integers) have an entry a module, as batches take them.
// Errors as in compact.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parquet/compact.hpp"

namespace warpcipher::parquet {

using Column = std::vector<std::uint64_t>;

inline constexpr std::size_t length_size = 4;
inline constexpr std::size_t nonce_size = 12;
inline constexpr std::size_t head_size = length_size + nonce_size;
inline constexpr std::size_t tag_size = 16;
inline constexpr std::size_t gcm_overhead = length_size + nonce_size + tag_size;
inline constexpr std::uint64_t most_ordinal = 32767;
// Of a chunk: a header and a page for each data page, and for the dictionary.
inline constexpr std::uint64_t most_modules = 2 * (most_ordinal + 2);

// Goes from module to module of a chunk between start and end, by their lengths. Refuses more than the format numbers
// at once: nothing is authentic yet.
class ModuleWalk {
 public:
  ModuleWalk(std::uint64_t start, std::uint64_t end) : start_(start), end_(end), at_(start) {}

  // Whether there is a length at position(), before the end.
  bool has_next() const { return at_ < end_ && end_ - at_ >= length_size; }
  std::uint64_t position() const { return at_; }

  // Adds the module at position(), of that length, and moves past it.
  void add(std::uint64_t length, Column& positions);

  // Adds the end, where the modules must end.
  void finish(Column& positions) const;

 private:
  const std::uint64_t start_, end_;
  std::uint64_t at_;
};

// Where the modules between start and end begin, and `end` itself.
Column walk_modules(Bytes data, std::uint64_t start, std::uint64_t end);

// One kind of modules of a chunk, headers or pages.
struct ModuleColumns {
  Column modules;  // where each begins, at its length
  Column outs;     // where its plaintext goes
  Column sizes;    // of its plaintext
};

struct PageModules {
  ModuleColumns heads, pages;
  std::uint64_t end = 0;  // of the plaintexts: header, page, header, page
};

// positions: of a ModuleWalk, two modules a page. dictionary: the first page is one. page_overhead: what encryption
// adds to a page. out: where the first plaintext goes.
PageModules lay_out_pages(std::span<const std::uint64_t> positions, bool dictionary, std::uint64_t page_overhead,
                          std::uint64_t out);

// The AADs of the `count` headers and pages of a chunk, back to back: prefix || type || row group || column || page,
// without the page for the dictionary. prefix: the AAD prefix and the file's unique bytes.
struct PageAads {
  std::vector<std::uint8_t> heads, pages;
  Column sizes;  // of both
};
PageAads page_aads(Bytes prefix, std::int16_t row_group, std::int16_t column, bool dictionary, std::size_t count);

// Appends one of them. number: of the page, where it is no dictionary.
void append_page_aad(std::vector<std::uint8_t>& to, Bytes prefix, bool is_head, bool is_dictionary,
                     std::int16_t row_group, std::int16_t column, std::uint64_t number);

// The bytes of a module's plaintext. overhead: what encryption adds.
std::uint64_t text_size(std::uint64_t module, std::uint64_t overhead);

[[noreturn]] void refuse_modules(std::uint64_t count);

// A chunk of which the file is read.
struct ChunkText {
  std::uint64_t position, size;  // in the data
  std::int16_t row_group, column;
  bool is_encrypted, dictionary;
  std::span<const std::uint64_t> walked = {};  // where its modules lie, where that is known: scan_pages()
};

// Where a chunk goes: its plaintext, and the first of its pages and the first byte of its AADs among those of all.
struct ChunkOut {
  std::uint64_t out, size, data;  // data: its first data page; 0 for a chunk that is not encrypted
  std::uint64_t first_page, pages, first_aad, aad_size;
};

// The modules of many chunks, one after another.
struct ChunkModules {
  ModuleColumns heads, pages;
  PageAads aads;
  std::vector<ChunkOut> chunks;
  Column dictionaries;  // the numbers of pages that are dictionaries
};

// Lays out chunks without gaps from 0 on. names: of the chunks, for errors.
ChunkModules lay_out_chunks(Bytes data, std::span<const ChunkText> chunks, std::span<const std::string> names,
                            Bytes prefix, std::uint64_t page_overhead);

// What a batch needs of modules: where their texts begin, their lengths with the tags, where the AADs begin that lie
// back to back, and the IVs, of 16 bytes in counter mode (nonce || 1).
struct ModuleTexts {
  Column texts, sealed, aad_offsets;
  std::vector<std::uint8_t> ivs;
};

// data: holds the modules, or the beginnings of them. Refuses modules that are not in it.
ModuleTexts texts_of(Bytes data, std::span<const std::uint64_t> modules, std::span<const std::uint64_t> lengths,
                     std::span<const std::uint64_t> aad_sizes, bool counter_mode);

// Writes the lengths and nonces of modules to be encrypted; lengths: of the plaintexts. nonces: 12 bytes each.
void write_heads(std::span<std::uint8_t> out, std::span<const std::uint64_t> modules,
                 std::span<const std::uint64_t> lengths, Bytes nonces, bool counter_mode);

}  // namespace warpcipher::parquet
