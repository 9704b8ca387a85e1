// SPDX-License-Identifier: Apache-2.0
// Chunks from one file to another, encrypted or decrypted on the way. Each thread takes a few chunks from reading to
// writing in buffers that its core's cache holds: handed on to another thread, or in longer pieces, a text comes from
// memory each time. The system lets one thread write to a file at a time. The others read and encrypt meanwhile, then
// wait in the system for their turn. Long chunks have fewer threads, so that buffers stay below most_buffers_len.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "engine/stream.hpp"
#include "flow/file/sealing.hpp"

namespace warpcipher {

// Full chunks of a regular file, back to back in both files: as plaintext in one, sealed in the other.
struct ChunkCopy {
  Direction direction;
  int source, target;  // files that take pread() and pwrite()
  std::uint64_t source_offset, target_offset;
  std::uint64_t first;  // the number of the first chunk
  std::size_t count;    // none of them is the final one
};

// Chunks that are in the target whole, and checked if they were decrypted. Fewer than all where the source ends, a tag
// does not match, or a read or a write fails, with this errno; what the target holds after them is then of no meaning.
struct CopiedChunks {
  std::uint64_t count;
  int read_error = 0, write_error = 0;

  std::uint64_t place() const { return count; }
};

// Copies chunks in order, as far as it goes. check: called on the caller's thread between pieces; may throw, and ends
// the call so.
//
// Throws as crypt_chunks().
CopiedChunks copy_chunks(std::string_view engine, const Sealing& sealing, const ChunkCopy& copy,
                         const std::function<void(bool interrupted)>& check);

// Consecutive chunks of a regular file, encrypted or decrypted from memory to memory: for sources and sinks that are
// only read and written in order, and for the checks of a file's beginning.
struct ChunksInMemory {
  Direction direction;
  std::uint64_t first;  // the number of the first chunk
  std::size_t count;
  bool is_final;                 // the file ends with them
  Memory memory = Memory::host;  // of both; device: the current one, nonces by their rule, and no HMAC
  std::span<const std::uint8_t> in;
  std::span<std::uint8_t> out;  // as long as what is made of them, and apart from `in`
};

// Encrypts or decrypts the chunks. Random nonces come from the system. Where the sealing has several keys, each chunk
// may be under any of them, and nothing says which: to decrypt only. `*key`, where it is given, is the number of the
// key to try first, and becomes the last key that opened something.
//
// Returns the number of the first chunk that is not authentic: then, and after an exception that is not of a wrong
// argument, host memory has no plaintext. Throws as run_columns().
std::optional<std::uint64_t> crypt_chunks(std::string_view engine, const Sealing& sealing, const ChunksInMemory& chunks,
                                          Stream stream = nullptr, std::size_t* key = nullptr);

}  // namespace warpcipher
