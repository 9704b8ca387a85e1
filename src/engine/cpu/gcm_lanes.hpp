// SPDX-License-Identifier: Apache-2.0
// AES-GCM and AES-GCM-SIV by AES instructions and carry-less products of one instruction set: GCM for short messages,
// where the calls into libcrypto take longer than the work, and for all where it is faster; GCM-SIV for all.
// lanes_pclmul.cpp, lanes_vpclmul.cpp and lanes_vpclmul512.cpp define one GcmLanes each, from one source
// (gcm_lanes_code.hpp); lanes.cpp lists what the processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpcipher::cpu {

// What is kept of a key; for GCM-SIV, of the keys that belong to a nonce. Plain data; its holder wipes it.
struct alignas(32) GcmLaneKey {
  static constexpr std::size_t most_powers = 32;

  std::uint8_t round_keys[15][16];
  // The powers of H from H^n to H, where n is the number of blocks in flight (or of a shorter message), then zeros for
  // a vector that reaches past the end. They have the form that gcm_lanes_code.hpp multiplies by. `sums` has the sum of
  // the halves of each.
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
  // Of an IV of 12 bytes, which is a part of J0. That of another is a hash under H: no branch may look at it.
  bool counter_is_public;
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

  // The same of the same keys, GCM storing past the cache: `out` is a multiple of 16 bytes. nullptr: this is it.
  const GcmLanes* past_cache;

  // key_len: 16, 24 or 32.
  void (*make_key)(const std::uint8_t* key, std::size_t key_len, GcmLaneKey& made);

  // Transforms the text and gives its whole tag, in time that depends on the lengths alone. The caller compares the tag
  // when decrypting, and wipes the text if it is another.
  void (*encrypt)(const GcmLaneKey& key, const GcmText& text, std::uint8_t (&tag)[16]);
  void (*decrypt)(const GcmLaneKey& key, const GcmText& text, std::uint8_t (&tag)[16]);

  // The same for GCM-SIV. `key` is of make_key(), with which it derives the keys of the nonce.
  void (*siv_encrypt)(const GcmLaneKey& key, const GcmSivText& text, std::uint8_t (&tag)[16]);
  void (*siv_decrypt)(const GcmLaneKey& key, const GcmSivText& text, std::uint8_t (&tag)[16]);
};

// What this processor can run, the fastest first; maybe nothing.
std::span<const GcmLanes* const> gcm_lanes_list();

#if defined(__x86_64__)
extern const GcmLanes gcm_lanes_aesni;
extern const GcmLanes gcm_lanes_vaes;
extern const GcmLanes gcm_lanes_vaes512;
#endif

}  // namespace warpcipher::cpu
