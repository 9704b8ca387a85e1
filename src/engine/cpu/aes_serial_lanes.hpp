// SPDX-License-Identifier: Apache-2.0
// AES in the modes where a block waits for the one before it, of several messages at once: a processor has four to ten
// rounds of as many blocks on their way in the time of one. aes_serial_aesni.cpp defines the code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher::cpu {

// Messages on their way, a lane each. Lane l of `lanes` has round_keys[r][l]; those behind are not looked at.
struct alignas(16) SerialLanes {
  static constexpr std::size_t most = 8;
  static constexpr std::size_t most_blocks = 16;  // at a time

  std::uint8_t round_keys[15][most][16];
  std::uint8_t chain[most][16];  // the IV, then the block that the next one waits for
  const std::uint8_t* in[most];
  std::uint8_t out[most][16 * most_blocks];  // `in` may be there
};

// SP 800-38A, sections 6.2 to 6.4: CBC encryption, CFB encryption with segments of a block, OFB.
enum class SerialMode : std::uint8_t { cbc, cfb, ofb };

struct SerialCode {
  const char* name;

  // The round keys of FIPS 197, section 5.2, in a time that depends on key_len (16, 24, 32) alone.
  void (*expand_key)(const std::uint8_t* key, std::size_t key_len, std::uint8_t (&round_keys)[15][16]);

  // Transforms `blocks` blocks from `in` to `out` of each of the first `lanes` lanes, 1 to `most`; `chain` goes on.
  void (*run)(SerialMode mode, int rounds, SerialLanes& state, std::size_t lanes, std::size_t blocks);
};

// What this processor can run, or nullptr.
const SerialCode* serial_code();

#if defined(__x86_64__)
extern const SerialCode serial_code_aesni;
#endif

}  // namespace warpcipher::cpu
