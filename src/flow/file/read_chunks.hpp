// SPDX-License-Identifier: Apache-2.0
// Reads chunks of an encrypted file into memory of the host or of a device: threads read, and ciphertext is decrypted
// as it comes. To a device:
//
//   threads     read 0    read 2    read 4              each thread has two slots of page-locked memory, takes the
//               read 1    read 3    read 5              next piece by itself, and settles a slot before it reads
//   to device        [0][1]    [2][3]    [4][5]         into it again: its copy has long arrived by then
//   kernels                    [0 to 3]                 tags, then text, of several pieces at once, to `out`
//
// A read of at most 64 MiB is decrypted as a whole when all of it is there, unless pieces are asked for, a longer one
// by windows of 8 pieces (joint.hpp). Long chunks, and chunks of which a part is wanted, are decrypted by each piece.
//
// A slot holds only ciphertext, so no plaintext is ever in host memory. To the host: each thread reads a piece into a
// buffer that stays in its cache, and decrypts it to where it belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "engine/stream.hpp"
#include "flow/file/file_piece.hpp"
#include "flow/file/sealing.hpp"
#include "flow/file/work.hpp"
#include "message/message.hpp"

namespace warpcipher {

struct ReadOptions {
  // That read, the caller's among them; 0: as many as the process has cores. More than that are not used.
  std::size_t threads = 0;
  // Bytes that a thread reads at once, or a whole chunk if that is longer; 0: the size measured to be best. A piece is
  // no longer than all chunks together, and to a device no longer than most_device_chunk_len.
  std::size_t piece_len = 0;
  // Called on the caller's thread between pieces, and where a signal interrupted a read; may throw, and ends the call
  // so.
  std::function<void(bool interrupted)> check;
};

// The longest chunk that goes to a device: two are on their way.
inline constexpr std::size_t most_device_chunk_len = PinnedBudget::most / slots_of_thread;

// Fills `out` where the chunks say. Returns when all is there, or has failed: after a failure or an exception all that
// they say is zeros. Reports the first chunk that failed. engine: as of run(), where the plaintext goes. stream: in
// device memory, its work so far may use `out` until it is done.
//
// Throws Error{invalid_argument}, and nothing has been written; Error{engine_unavailable, engine_failure,
// out_of_memory}; what options.check throws.
std::optional<ReadFailure> read_chunks(std::string_view engine, const FileChunks& chunks, Stream stream,
                                       const ReadOptions& options);

// Reads bytes of a file that are not encrypted into memory of the host or of a device, on all cores. To a device each
// thread has two slots of page-locked memory, which are copied to where the bytes belong.
struct PlainBytes {
  int descriptor = -1;           // of a file that takes pread()
  std::uint64_t begin = 0;       // of the bytes in it
  Memory memory = Memory::host;  // of out; device: the current one
  std::span<std::uint8_t> out = {};
  std::span<const std::uint8_t> source = {};  // where descriptor is -1: memory that holds the bytes
};

// Fills `out`. Returns when all is there, or why it is not (the failure's chunk is 0): then and after an exception
// what `out` holds is of no use. engine, stream, options: as of read_chunks().
//
// Throws Error{invalid_argument}, and nothing has been written; Error{engine_unavailable, engine_failure,
// out_of_memory}; what options.check throws.
std::optional<ReadFailure> read_plain(std::string_view engine, const PlainBytes& bytes, Stream stream,
                                      const ReadOptions& options);

}  // namespace warpcipher
