// SPDX-License-Identifier: Apache-2.0
// The columnar form of a batch: many messages of one algorithm and direction, described by arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pipeline/run.hpp"

namespace warpcipher {

// As wc_columns in warpcipher.h, which says what each field means; spans that may be absent are empty then.
struct Columns {
  Direction direction = Direction::encrypt;
  Padding padding = Padding::none;
  Memory memory = Memory::host;
  std::span<const Key* const> keys;
  std::span<const std::uint32_t> key_index;
  std::size_t count = 0;
  std::span<const std::uint8_t> in;
  std::span<const std::uint64_t> in_offsets;
  std::span<const std::uint64_t> in_lengths;
  std::span<std::uint8_t> out;
  std::span<const std::uint64_t> out_offsets;
  std::span<const std::uint8_t> ivs;
  std::size_t iv_len = 0;
  std::span<const std::uint8_t> aad;
  std::span<const std::uint64_t> aad_offsets;
  std::span<const std::uint64_t> aad_lengths;
  std::size_t tag_len = 0;
};

// Runs them as run() does; results[i].written counts the tag when encrypting an AEAD. Throws
// Error{invalid_argument} when a column has another number of entries than `count`, or a range leaves its buffer.
void run_columns(std::string_view engine, const Columns& columns, std::span<Result> results, Stream stream = nullptr);

}  // namespace warpcipher
