// SPDX-License-Identifier: Apache-2.0
// AES by AES instructions in the modes whose blocks do not wait for each other: ECB, CBC and CFB decryption, CTR, XTS.
// lanes_pclmul.cpp, lanes_vpclmul.cpp and lanes_vpclmul512.cpp define one AesLanes each, from one source
// (aes_lanes_code.hpp); lanes.cpp lists what the processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpcipher::cpu {

// What is kept of a key. Plain data; its holder wipes it.
struct alignas(32) AesLaneKey {
  std::uint8_t encrypt[15][16];  // FIPS 197, section 5.2
  std::uint8_t decrypt[15][16];  // of the equivalent inverse cipher (section 5.3.5), in the order of use
  std::uint8_t tweak[15][16];    // XTS: the tweak key
  int rounds;
};

struct AesLanes {
  // Transforms `len` bytes from `in` to `out`, which are the same buffer or disjoint, in time that depends on `len`
  // (and in CTR on the counter) alone. `start` is 16 bytes: the IV or the block of ciphertext before the text (CBC,
  // CFB), the first counter (CTR) or the first tweak (XTS). ECB does not read it.
  using Run = void (*)(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                       std::size_t len);

  const char* name;

  // The same of the same keys, storing past the cache: `out` is a multiple of 64 bytes. nullptr: this is it.
  const AesLanes* past_cache;

  // key_len: 16, 24 or 32. tweak_key: as long, or nullptr for other modes than XTS.
  void (*make_key)(const std::uint8_t* key, const std::uint8_t* tweak_key, std::size_t key_len, AesLaneKey& made);

  // The first tweak of an XTS message: its IV under the tweak key (IEEE 1619, section 5.3).
  void (*make_tweak)(const AesLaneKey& key, const std::uint8_t* iv, std::uint8_t* tweak);

  // ECB and CBC take whole blocks, XTS a block or more, CFB and CTR any length.
  Run ecb_encrypt, ecb_decrypt, cbc_decrypt, cfb_decrypt, ctr, xts_encrypt, xts_decrypt;
};

// What this processor can run, the fastest first; maybe nothing.
std::span<const AesLanes* const> aes_lanes_list();

#if defined(__x86_64__)
extern const AesLanes aes_lanes_aesni;
extern const AesLanes aes_lanes_vaes;
extern const AesLanes aes_lanes_vaes512;
#endif

}  // namespace warpcipher::cpu
