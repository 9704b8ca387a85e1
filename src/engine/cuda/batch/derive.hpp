// SPDX-License-Identifier: Apache-2.0
// The kernels behind AesBatch. All pointers are to device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/gpu.hpp"
#include "engine/cuda/message_view.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

inline constexpr std::size_t gcm_plain_iv_len = 12;

struct KeyExpansion {
  const std::uint8_t* keys;  // key k: key_len bytes at keys + stride k
  std::uint32_t stride;
  std::uint32_t key_len;
  std::uint32_t count;        // of keys
  bool inverse;               // for decryption (FIPS 197, section 5.3.5)
  uint4* rows;                // of round keys: most_rows for each key
  gf128::Element* hash_keys;  // nullptr, or with it E(0) of each key
};

// AES key schedules, a lane each.
void expand_keys(const Device& device, Stream stream, const KeyExpansion& expansion);

// The same for the second halves of XTS keys, which only encrypt (IEEE 1619, section 5.1). first_halves: the expansion
// of the first.
void expand_tweak_keys(const Device& device, Stream stream, const KeyExpansion& first_halves, uint4* rows);

// Sets *bad when the two halves of an XTS key are equal (Key::Key refuses it). keys: `count` of `key_len` bytes, one
// behind the other. Takes the same time wherever halves differ.
void check_key_halves(const Device& device, Stream stream, const std::uint8_t* keys, std::uint32_t key_len,
                      std::uint32_t count, std::uint32_t* bad);

struct LongIv {
  const std::uint8_t* bytes;
  std::uint64_t len;
  std::uint32_t message;
};

struct IvHashing {
  const LongIv* ivs;
  std::uint32_t count;
  const gf128::Element* hash_keys;
  MessageView* views;
};

// views[ivs[i].message].start = J0 (SP 800-38D, section 7.1, step 2), a lane each.
void hash_ivs(const Device& device, Stream stream, const IvHashing& hashing);

}  // namespace warpcipher::cuda
