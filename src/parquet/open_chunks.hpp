// SPDX-License-Identifier: Apache-2.0
// Chunks of a Parquet file decrypted into memory of the host or of a device, in one way:
//
//   threads       find the modules of a chunk by their lengths, and decrypt its page headers     (page_modules.hpp)
//   then          where everything goes is known, as headers have lost their padding             (page_modules.hpp)
//   read_chunks() reads and decrypts the pages, to where they go                                 (read_chunks.hpp)
//   read_plain()  reads chunks that are not encrypted                                            (read_chunks.hpp)
//   at the end    the headers are put before their pages
//
// So what comes out are plain chunks, and on a device plaintext of pages is never in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/stream.hpp"
#include "flow/file/read_chunks.hpp"
#include "message/key.hpp"
#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {

struct ChunksToOpen {
  ChunkSource source;
  std::span<const SealedChunk> chunks;
  std::span<const std::uint32_t> key_index;  // of each chunk; those that are not encrypted have any
  std::span<const Key* const> head_keys;     // AES-GCM
  std::span<const Key* const> page_keys;     // AES-GCM, or in counter mode, the same bytes
  Bytes prefix;                              // the AAD prefix and the file's unique bytes
  std::span<std::uint8_t> out;               // room for the chunks as the file has them; apart from all else
  Memory memory = Memory::host;              // of out; device: the current one
  // The longest module of a page that goes to a device by read_chunks(). A longer one is copied, and then decrypted.
  std::uint64_t longest_page = most_device_chunk_len;
};

// Where a page is in its chunk and goes to: its header, and the bytes of header and page without encryption.
struct OpenedPage {
  std::uint64_t position, out, size;
};

// Of the chunks, back to back in `out`.
struct OpenedChunk {
  std::uint64_t out, size;
  std::vector<OpenedPage> pages;  // `out` of each counts from the chunk; none of a chunk that is not encrypted
};

struct OpenFailure {
  enum class Kind : std::uint8_t { bad_tag, wrong, file };
  static constexpr std::uint64_t no_module = UINT64_MAX;

  Kind kind;
  std::size_t chunk;
  std::uint64_t module = no_module;  // of the chunk: header, page, header, page
  std::string why = {};              // wrong
  ReadError read = {};               // file

  std::pair<std::size_t, std::uint64_t> place() const { return {chunk, module}; }
};

struct OpenResult {
  std::vector<OpenedChunk> chunks;
  std::optional<OpenFailure> failure;
};

// engine, stream: as of read_chunks(). threads: that work, the caller's among them; 0: as many as the process has
// cores. check: as ReadOptions::check. Bytes of `out` beyond the chunks are zeros then; after a failure or an exception
// it is all zeros. Reports the first header that failed, or else the first page.
//
// Throws Error{invalid_argument, engine_unavailable, engine_failure, out_of_memory}; what check throws.
OpenResult open_chunks(std::string_view engine, const ChunksToOpen& wanted, Stream stream, std::size_t threads,
                       const std::function<void(bool interrupted)>& check);

}  // namespace warpcipher::parquet
