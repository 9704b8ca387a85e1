// SPDX-License-Identifier: Apache-2.0
// ChaCha20 and its AEAD with Poly1305 (RFC 8439) by the vectors of one instruction set, a block of key stream in each
// lane. chacha_lanes_baseline.cpp, chacha_lanes_avx2.cpp and chacha_lanes_avx512.cpp define one ChaChaLanes each, from
// one source (chacha_lanes_code.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cipher/chacha.hpp"

namespace warpcipher::cpu {

// A message, or a part of one, to be encrypted or decrypted. out: as long as the text, the same buffer or disjoint.
struct ChaChaText {
  const std::uint8_t* aad;
  std::size_t aad_len;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
};

// Poly1305 of a part of a text, of its blocks alone: below 2^131, least significant byte first.
using ChaChaHash = std::uint8_t[24];

// Each in time that depends on the lengths alone. Whoever decrypts compares the tag, and wipes the text if it is
// another. States are those of the first block (chacha::make_state()).
struct ChaChaLanes {
  const char* name;
  std::size_t blocks;  // at a time

  // Adds the key stream from the block of `first` on.
  void (*apply)(const chacha::State& first, const std::uint8_t* in, std::uint8_t* out, std::size_t len);

  // The key stream itself: `count` blocks from that of `first` on. The counter does not carry.
  void (*generate)(const chacha::State& first, std::uint8_t* out, std::size_t count);

  // The blocks of `count` states, whatever their keys: 64 bytes for each, in the order of the states.
  void (*key_streams)(const chacha::State* states, std::size_t count, std::uint8_t* out);

  // A message. `first`: of block 0.
  void (*encrypt)(const chacha::State& first, const ChaChaText& text, std::uint8_t (&tag)[16]);
  void (*decrypt)(const chacha::State& first, const ChaChaText& text, std::uint8_t (&tag)[16]);

  // A message whose key stream was made before, from block 0 on.
  void (*encrypt_short)(const std::uint8_t* key_stream, const ChaChaText& text, std::uint8_t (&tag)[16]);
  void (*decrypt_short)(const std::uint8_t* key_stream, const ChaChaText& text, std::uint8_t (&tag)[16]);

  // A part of a message, which begins with whole blocks of AAD and text before it: hashed with the `key` of Poly1305 as
  // if it were all, the last block filled up with zeros. `first`: of its first block.
  void (*encrypt_part)(const chacha::State& first, const std::uint8_t* key, const ChaChaText& part, ChaChaHash& hash);
  void (*decrypt_part)(const chacha::State& first, const std::uint8_t* key, const ChaChaText& part, ChaChaHash& hash);
};

// What this processor can run, the fastest first; the last is the baseline.
std::span<const ChaChaLanes* const> chacha_lanes_list();

extern const ChaChaLanes chacha_lanes_baseline;
#if defined(__x86_64__)
extern const ChaChaLanes chacha_lanes_avx2;
extern const ChaChaLanes chacha_lanes_avx512;
#endif

}  // namespace warpcipher::cpu
