// SPDX-License-Identifier: Apache-2.0
// AES in the modes where a block waits for the one before it, for several messages at once: while one round of a block
// completes, a processor starts four to ten rounds of other blocks. aes_serial_aesni.cpp defines the code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher::cpu {

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
  const char* name;

  // The round keys of FIPS 197, section 5.2, in a time that depends on key_len (16, 24, 32) alone.
  void (*expand_key)(const std::uint8_t* key, std::size_t key_len, std::uint8_t (&round_keys)[15][16]);

  // Transforms `blocks` blocks of each of the first `lanes` lanes (1 to `most`), and updates `chain`.
  void (*run)(SerialMode mode, int rounds, SerialLanes& state, std::size_t lanes, std::size_t blocks);

  // Transforms `blocks` (1 or more) blocks of lane 0 from state.in[0] to `out`, the same place or disjoint.
  void (*run_alone)(SerialMode mode, int rounds, SerialLanes& state, std::uint8_t* out, std::size_t blocks);
};

// What this processor can run, or nullptr.
const SerialCode* serial_code();

#if defined(__x86_64__)
extern const SerialCode serial_code_aesni;
#endif

}  // namespace warpcipher::cpu
