// SPDX-License-Identifier: Apache-2.0
// Encrypts texts on a device and writes them to a file as chunks: the counterpart of read_chunks(). Each thread has two
// slots, and takes the next piece by itself:
//
//   device      gather 0, encrypt 0, copy to slot 0    gather 2, ...     plaintext stays in device memory
//   thread                                             write 0           from page-locked memory, only ciphertext
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "engine/device_engine.hpp"
#include "engine/stream.hpp"
#include "flow/file/sealing.hpp"

namespace warpcipher {

// A part of the plaintext. In device memory: of any device that the current one can copy from.
struct TextPart {
  const std::uint8_t* data = nullptr;
  std::uint64_t len = 0;
  Memory memory = Memory::device;
};

// Chunks take the bytes of the parts, one after another. A chunk lies in the file as ciphertext [tag], from its offset
// on. Everything is borrowed for the call, and nobody changes it meanwhile.
struct ChunksToWrite : SealedChunks {  // of an AEAD, with IVs
  int descriptor = -1;                 // of a file that takes pwrite()
  std::span<const TextPart> parts;     // together as long as all chunks
  std::span<std::uint8_t> tags;        // where tags go, tag_len bytes each; absent: after each ciphertext
};

struct WriteOptions {
  std::size_t threads = 0;    // as of ReadOptions
  std::size_t piece_len = 0;  // bytes of chunks that a thread takes at once; 0: the size measured to be best
  std::function<void(bool interrupted)> check;
};

struct WriteFailure {
  std::uint64_t position;
  int error;  // errno

  std::uint64_t place() const { return position; }
};

// Returns when all is written, or why it is not: then parts of it are. engine: as of run(). Work on the streams that
// made the texts is done. The plaintext in the device memory of the call is wiped.
//
// Throws Error{invalid_argument}, and nothing has been written; Error{engine_unavailable, engine_failure,
// out_of_memory}; what options.check throws.
std::optional<WriteFailure> write_chunks(std::string_view engine, const ChunksToWrite& chunks,
                                         const WriteOptions& options);

// Writes texts to a file as they are, on all cores: the counterpart of read_plain(). Text in device memory is
// copied to page-locked slots, two a thread, and written from there while the next is copied.

// Writes the parts, one after another, from the beginning of a file on that takes pwrite(). Returns when all is there,
// or why it is not: then parts of it are. engine: as of run(); needed if a part is in device memory. Work on the
// streams that made the parts is done.
//
// Throws Error{invalid_argument}, and nothing has been written; Error{engine_unavailable, engine_failure,
// out_of_memory}; what options.check throws.
std::optional<WriteFailure> write_plain(std::string_view engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options);

// The same by an engine, through slots of its memory.
std::optional<WriteFailure> write_plain(DeviceEngine& engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options);

}  // namespace warpcipher
