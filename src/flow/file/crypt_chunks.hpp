// SPDX-License-Identifier: Apache-2.0
// Consecutive chunks of a regular file, encrypted or decrypted from memory to memory: for sources and sinks that are
// only read and written in order, and for the checks of a file's beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/stream.hpp"
#include "flow/file/sealing.hpp"

namespace warpcipher {

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
// key to try first, and becomes that of the last that opened something.
//
// Returns the number of the first chunk that is not authentic: then, and after an exception that is not of a wrong
// argument, host memory has no plaintext. Throws as run_columns().
std::optional<std::uint64_t> crypt_chunks(std::string_view engine, const Sealing& sealing, const ChunksInMemory& chunks,
                                          Stream stream = nullptr, std::size_t* key = nullptr);

}  // namespace warpcipher
