// SPDX-License-Identifier: Apache-2.0
// Reads bytes of a file that are not encrypted into memory of the host or of a device, on all cores. To a device each
// thread has two slots of page-locked memory (see read_chunks.hpp), which are copied to where the bytes belong.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/stream.hpp"
#include "flow/file/read_chunks.hpp"
#include "message/message.hpp"

namespace warpcipher {

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
