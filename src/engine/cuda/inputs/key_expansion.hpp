// SPDX-License-Identifier: Apache-2.0
// AES key schedules derived on the GPU, in constant time (cipher/aes.hpp: the S-box as logic). All pointers are to
// device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

struct KeyExpansion {
  const std::uint8_t* keys;  // key k: key_len bytes at keys + stride k
  std::uint32_t stride;
  std::uint32_t key_len;
  std::uint32_t count;        // of keys
  bool inverse;               // for decryption (FIPS 197, section 5.3.5)
  uint4* round_keys;          // most_round_keys for each key
  gf128::Element* hash_keys;  // E(0) of each key; nullptr: not wanted
};

// AES key schedules, one in each lane.
void expand_keys(const Device& device, Stream stream, const KeyExpansion& expansion);

// The same for the second halves of XTS keys, which only encrypt (IEEE 1619, section 5.1). first_halves: the expansion
// of the first halves.
void expand_tweak_keys(const Device& device, Stream stream, const KeyExpansion& first_halves, uint4* round_keys);

// Sets *bad when the two halves of an XTS key are equal (Key::Key refuses such a key). keys: `count` keys of `key_len`
// bytes, one after another. The time does not depend on where halves differ.
void check_key_halves(const Device& device, Stream stream, const std::uint8_t* keys, std::uint32_t key_len,
                      std::uint32_t count, std::uint32_t* bad);

}  // namespace warpcipher::cuda
