// SPDX-License-Identifier: Apache-2.0
// The engine's own vector code, as a table of functions for each family. The families' source (aes_code.hpp,
// aes_serial_code.hpp, gcm_code.hpp, chacha_code.hpp, des_code.hpp) is compiled once for each instruction set, by
// src/instruction_sets/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cipher/chacha.hpp"

namespace warpcipher::cpu {

// --- AES in the modes whose blocks do not wait for each other: ECB, CBC and CFB decryption, CTR, XTS -----------------

// State kept of a key. Plain data; its holder wipes it.
struct alignas(32) AesLaneKey {
  std::uint8_t encrypt[15][16];  // FIPS 197, section 5.2
  std::uint8_t decrypt[15][16];  // of the equivalent inverse cipher (section 5.3.5), in the order of use
  std::uint8_t tweak[15][16];    // XTS: the tweak key
  int rounds;
};

struct AesLanes {
  // Transforms `len` bytes from `in` to `out`, which are the same buffer or disjoint, in time that depends only on
  // `len` (and in CTR on the counter). `start` is 16 bytes: the IV or the block of ciphertext before the text (CBC,
  // CFB), the first counter (CTR) or the first tweak (XTS). ECB does not read it. past_cache: store past the cache;
  // `out` is a multiple of 64 bytes then.
  using Run = void (*)(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                       std::size_t len, bool past_cache);

  const char* name;

  // key_len: 16, 24 or 32. tweak_key: as long, or nullptr for other modes than XTS.
  void (*make_key)(const std::uint8_t* key, const std::uint8_t* tweak_key, std::size_t key_len, AesLaneKey& made);

  // The first tweak of an XTS message: its IV under the tweak key (IEEE 1619, section 5.3).
  void (*make_tweak)(const AesLaneKey& key, const std::uint8_t* iv, std::uint8_t* tweak);

  // ECB and CBC take whole blocks, XTS a block or more, CFB and CTR any length.
  Run ecb_encrypt, ecb_decrypt, cbc_decrypt, cfb_decrypt, ctr, xts_encrypt, xts_decrypt;
};

// --- AES in the modes where a block waits for the one before it ------------------------------------------------------
//
// For several messages at once: while one round of a block completes, a processor starts four to ten rounds of others.

// Messages in flight, one in each lane. Lane l has the round keys round_keys[r][l]. Lanes from `lanes` on are not read.
struct alignas(16) SerialLanes {
  static constexpr std::size_t most = 8;
  static constexpr std::size_t most_blocks = 16;  // at a time

  std::uint8_t round_keys[15][most][16];
  std::uint8_t chain[most][16];  // the IV, then the block that the next one waits for
  const std::uint8_t* in[most];
  std::uint8_t out[most][16 * most_blocks];  // `in` may point here
};

// SP 800-38A, sections 6.2 to 6.4: CBC encryption, CFB encryption with segments of a block, OFB.
enum class SerialMode : std::uint8_t { cbc, cfb, ofb };

struct SerialCode {
  // The round keys of FIPS 197, section 5.2, in a time that depends only on key_len (16, 24, 32).
  void (*expand_key)(const std::uint8_t* key, std::size_t key_len, std::uint8_t (&round_keys)[15][16]);

  // Transforms `blocks` blocks of each of the first `lanes` lanes (1 to `most`), and updates `chain`.
  void (*run)(SerialMode mode, int rounds, SerialLanes& state, std::size_t lanes, std::size_t blocks);

  // Transforms `blocks` (1 or more) blocks of lane 0 from state.in[0] to `out`, the same place or disjoint.
  void (*run_alone)(SerialMode mode, int rounds, SerialLanes& state, std::uint8_t* out, std::size_t blocks);
};

// --- AES-GCM and AES-GCM-SIV -----------------------------------------------------------------------------------------

// State kept of a key; for GCM-SIV, of the keys that belong to a nonce. Plain data; its holder wipes it.
struct alignas(32) GcmLaneKey {
  static constexpr std::size_t most_powers = 32;

  std::uint8_t round_keys[15][16];
  // The powers of H from H^n to H, where n is the number of blocks in flight (or of a shorter message), then zeros for
  // a vector that reaches past the end. They have the form that gcm_code.hpp multiplies by. `sums` has the sum of the
  // halves of each.
  std::uint8_t powers[most_powers + 3][16];
  std::uint8_t sums[most_powers + 3][16];
  int rounds;
};

// One message. out: as long as the text, the same buffer or disjoint.
struct GcmText {
  const std::uint8_t* counter0;  // J0 (SP 800-38D, section 7.1), 16 bytes
  const std::uint8_t* aad;
  std::size_t aad_len;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
  // Of an IV of 12 bytes, which is a part of J0. J0 of another is a hash under H: no branch may look at it.
  bool counter_is_public;
  bool past_cache = false;  // store past the cache; `out` is a multiple of 16 bytes then
};

// One message of GCM-SIV. Decryption counts from `given_tag`.
struct GcmSivText {
  const std::uint8_t* nonce;
  const std::uint8_t* given_tag;
  const std::uint8_t* aad;
  std::size_t aad_len;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;

  std::size_t blocks() const { return (aad_len + 15) / 16 + (len + 15) / 16 + 1; }
};

struct GcmLanes {
  const char* name;

  // key_len: 16, 24 or 32.
  void (*make_key)(const std::uint8_t* key, std::size_t key_len, GcmLaneKey& made);

  // Transforms the text and gives its whole tag, in time that depends only on the lengths. The caller compares the tag
  // when decrypting, and wipes the text if it is another.
  void (*encrypt)(const GcmLaneKey& key, const GcmText& text, std::uint8_t (&tag)[16]);
  void (*decrypt)(const GcmLaneKey& key, const GcmText& text, std::uint8_t (&tag)[16]);

  // The same for GCM-SIV. `key` is of make_key(), with which it derives the keys of the nonce.
  void (*siv_encrypt)(const GcmLaneKey& key, const GcmSivText& text, std::uint8_t (&tag)[16]);
  void (*siv_decrypt)(const GcmLaneKey& key, const GcmSivText& text, std::uint8_t (&tag)[16]);
};

// --- ChaCha20 and its AEAD with Poly1305 (RFC 8439) ------------------------------------------------------------------

// A message, or a part of one, to be encrypted or decrypted. out: as long as the text, the same buffer or disjoint.
struct ChaChaText {
  const std::uint8_t* aad;
  std::size_t aad_len;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
};

// Poly1305 of the blocks of a part of a text: below 2^131, least significant byte first.
using ChaChaHash = std::uint8_t[24];

// A block of key stream in each lane. Each function in time that depends only on the lengths. A caller that decrypts
// compares the tag, and wipes the text if it is another. States belong to the first block (chacha::make_state()).
struct ChaChaLanes {
  const char* name;
  std::size_t blocks;  // at a time

  // Adds the key stream from the block of `first` on.
  void (*apply)(const chacha::State& first, const std::uint8_t* in, std::uint8_t* out, std::size_t len);

  // The key stream itself: `count` blocks from `first` on. The counter does not carry.
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

// --- DES, bitsliced --------------------------------------------------------------------------------------------------

struct DesLanes {
  const char* name;
  std::size_t lanes;  // blocks that run at once, a group; a multiple of 64

  // One key. masks: 768 a pass, of bitslice::expand_key. in, out: `groups` times `lanes` blocks of 8 bytes, any
  // alignment; the same buffer or disjoint.
  void (*transform)(const std::uint64_t* masks, int passes, const std::uint8_t* in, std::uint8_t* out,
                    std::size_t groups);

  // A key for each block of one group. planes: 64 `lanes` bits a pass, of expand_keys, aligned to lanes / 8 bytes;
  // indices: bitslice::subkey_planes from the pass to start with.
  void (*transform_keyed)(const std::uint8_t* planes, const std::uint8_t* indices, int passes, const std::uint8_t* in,
                          std::uint8_t* out);

  // The planes of one pass's keys. keys: `lanes` times 8 bytes; planes: as many bytes, aligned to lanes / 8 bytes.
  void (*expand_keys)(const std::uint8_t* keys, std::uint8_t* planes);
};

// --- lists -----------------------------------------------------------------------------------------------------------

// Code compiled for one instruction set (core/processor.hpp names them); nullptr: nothing of that family.
struct Lanes {
  const char* name;
  const AesLanes* aes = nullptr;
  const SerialCode* serial = nullptr;
  const GcmLanes* gcm = nullptr;
  const ChaChaLanes* chacha = nullptr;
  const DesLanes* des = nullptr;

  static const Lanes baseline, avx2, avx512, aesni, vaes, vaes512;
};

// The families that this processor can run, the fastest first. AES and GCM: maybe nothing. The others end with the
// baseline.
std::span<const AesLanes* const> aes_lanes_list();
std::span<const GcmLanes* const> gcm_lanes_list();
std::span<const ChaChaLanes* const> chacha_lanes_list();
std::span<const DesLanes* const> des_lanes_list();

// Or nullptr.
const SerialCode* serial_code();

}  // namespace warpcipher::cpu
