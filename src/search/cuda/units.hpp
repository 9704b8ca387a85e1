// SPDX-License-Identifier: Apache-2.0
// The kernels of the searches that take any template, and are part of the library. The files that launch them have no
// kernel, so only the host's compiler compiles those.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/stream.hpp"

namespace warpcipher::search::cuda {

// How many of the lowest free bits a unit has, if the space has that many. Never changes the result.
struct UnitLoops {
  static constexpr std::uint32_t most = 12;
  static constexpr std::uint32_t fewest = 4;  // for devices that are too slow for longer units

  std::uint32_t many = 12;
  std::uint32_t few = 8;         // for a range that would not fill the device otherwise
  std::uint32_t log2_many = 30;  // ranges of at least this many keys get `many`
};

// --- AES (aes_search.cu): each thread tests the keys of a unit. Words as a little-endian machine loads them.
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

// --- DES (des_generic.cu): each thread tests the keys of as many units as a word has bits.
struct DesUnits {
  static constexpr std::uint32_t threads = 64;  // of a block: 48 KiB of planes for three keys
  static constexpr std::uint32_t lanes = 32;    // units of a thread

  std::uint32_t text[64], expected[64], mask[64];  // planes, 0 or ~0
  std::uint8_t toggles[UnitLoops::most];           // the plane of each loop bit
  const std::uint8_t* keys;                        // of each unit
  const std::uint8_t* indices;                     // subkey_planes from the first pass on
  std::uint32_t* hits;                             // their number, three words, the hits
  std::uint32_t units, key_len, passes, loops, capacity;
  std::uint8_t key_of_pass[4];
};

// On the current device; does not wait.
void launch_des_units(const DesUnits& p, Stream stream);

}  // namespace warpcipher::search::cuda
