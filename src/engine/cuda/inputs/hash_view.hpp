// SPDX-License-Identifier: Apache-2.0
// A message as GHASH sees it: AAD and ciphertext (GCM-SIV: plaintext), each padded with zeros to blocks, are one
// sequence of blocks X_0 ... X_n-1. It is cut from the end into chunks of c blocks, so that only the first may be
// shorter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/runtime/block.hpp"

namespace warpcipher::cuda {

struct HashView {
  const std::uint8_t* aad;   // device memory
  const std::uint8_t* text;  // the hashed bytes
  std::uint8_t* tag;         // nullptr: of a wrong message of columns, which will not run
  std::uint64_t aad_len;
  std::uint64_t text_len;
  std::uint64_t chunk_blocks;
  std::uint32_t tag_len;
  std::uint32_t key;  // its number in the group's table of powers
  // E(J0), unless an array of masks has it. GCM-SIV: the given tag, where Message::compute_tag is set.
  // ChaCha20-Poly1305: see chacha::NonceForm.
  Block mask;

  WARPCIPHER_HD std::uint64_t aad_blocks() const { return (aad_len + 15) / 16; }
  WARPCIPHER_HD std::uint64_t blocks() const { return aad_blocks() + (text_len + 15) / 16; }
  WARPCIPHER_HD gf128::Element lengths() const { return {8 * aad_len, 8 * text_len}; }  // in bits: the last block
  WARPCIPHER_HD std::uint64_t chunks() const { return (blocks() + chunk_blocks - 1) / chunk_blocks; }
};

}  // namespace warpcipher::cuda
