// SPDX-License-Identifier: Apache-2.0
// The columnar form of a batch: many messages of one algorithm and direction, described by arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "message/message.hpp"

namespace warpcipher {

// As wc_columns in warpcipher.h, which says what each field means; a span that is absent is empty.
struct Columns {
  Direction direction = Direction::encrypt;
  Padding padding = Padding::none;
  Memory memory = Memory::host;             // of in and out
  Memory columns_memory = Memory::host;     // of all other arrays, and of the results
  std::span<const Key* const> keys;         // of one algorithm; or
  const Algorithm* algorithm = nullptr;     // this one, and
  std::span<const std::uint8_t> key_bytes;  // the bytes of its keys, one after another
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
  // Each text has its own memory. `in` and `out` then span all of them: see MessageColumns.
  bool scattered = false;
  std::uint64_t texts_len = 0;  // of all inputs, where texts are scattered

  const Algorithm& algorithm_of_all() const { return algorithm != nullptr ? *algorithm : keys[0]->algorithm(); }
  std::size_t key_count() const { return algorithm != nullptr ? key_bytes.size() / algorithm->key_len() : keys.size(); }
};

}  // namespace warpcipher
