// SPDX-License-Identifier: Apache-2.0
// Chunks decrypted from a file into host memory: each thread takes a few pages at a time from reading to plaintext, in
// a buffer that its core's cache holds. Page headers are mended (page_header.hpp) and lose their padding, so what comes
// out is a plain chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flow/file/sealing.hpp"
#include "message/key.hpp"
#include "parquet/page_stream.hpp"

namespace warpcipher::parquet {

struct ChunksToOpen {
  ChunkSource source;
  std::span<const SealedChunk> chunks;
  std::span<const std::uint32_t> key_index;  // of each chunk; those that are not encrypted have any
  std::span<const Key* const> head_keys;     // AES-GCM
  std::span<const Key* const> page_keys;     // AES-GCM, or in counter mode, the same bytes
  Bytes prefix;                              // the AAD prefix and the file's unique bytes
  std::span<std::uint8_t> out;               // room for the chunks as the file has them; apart from all else
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
};

struct OpenResult {
  std::vector<OpenedChunk> chunks;
  std::optional<OpenFailure> failure;
};

// engine: as of run(). threads: that work, the caller's among them; 0: as many as the process has cores. check: as
// ReadOptions::check. What `out` has beyond the chunks is zeros then; after a failure or an exception it is all zeros.
//
// Throws Error{invalid_argument, engine_unavailable, engine_failure, out_of_memory}; what check throws.
OpenResult open_chunks(std::string_view engine, const ChunksToOpen& wanted, std::size_t threads,
                       const std::function<void(bool interrupted)>& check);

}  // namespace warpcipher::parquet
