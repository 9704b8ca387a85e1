// SPDX-License-Identifier: Apache-2.0
// The kernels of the AES search that is part of the library (aes_search.hpp): each thread tests the keys of a unit.
// aes_search.hpp has no kernel, so only the host's compiler compiles it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/stream.hpp"
#include "search/cuda/unit_loops.hpp"

namespace warpcipher::search::cuda {

// Words as a little-endian machine loads them.
struct AesUnits {
  static constexpr std::uint32_t threads = 512;  // of a block

  std::uint32_t toggles[UnitLoops::most][8];  // the bits of the key that each loop bit changes
  std::uint32_t in[4], expected[4], mask[4];
  const std::uint8_t* keys;  // of each unit
  std::uint32_t* hits;       // their number, three words, the hits
  std::uint32_t units, loops, capacity;
  bool early;  // whether all of the ciphertext is known
};

// For keys of `key_len` bytes. decrypt: `in` is a ciphertext, and any bits of the expected plaintext may be unknown. On
// the current device; does not wait.
void launch_aes_units(const AesUnits& p, std::size_t key_len, bool decrypt, Stream stream);

}  // namespace warpcipher::search::cuda
