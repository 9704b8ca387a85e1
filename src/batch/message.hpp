// SPDX-License-Identifier: Apache-2.0
// A message: one call's worth of work, and the checks it must pass before any engine sees it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/key.hpp"
#include "batch/result.hpp"
#include "core/error.hpp"
#include "mode/mode.hpp"
#include "mode/padding.hpp"

namespace warpcipher {

enum class Padding : std::uint8_t { none, pkcs7 };

// Where in, out and tag lie. IV and AAD are always in host memory.
enum class Memory : std::uint8_t { host, device };

// No buffer is longer: a process has 2^56 bytes of addresses at most, of any processor or GPU that there is. What is
// longer is mostly a caller's subtraction that went below zero. So the sum of a few lengths never wraps. (SP 800-38D,
// section 5.2.1.1, takes IVs and AAD of up to 2^61 - 1 bytes.)
inline constexpr std::uint64_t most_buffer_len = std::uint64_t{1} << 56;

// Throws Error{invalid_argument} that names `what` if a length from outside is longer than that. What sums lengths up
// calls this first; check_messages() does, for those of messages.
void check_buffer_len(const char* what, std::uint64_t len);

// Throws Error{invalid_argument} unless a batch may have so many messages: plans number them with 32 bits. What makes
// room for that many of something calls this first.
void check_message_count(std::uint64_t count);

// IEEE 1619, section 5.1: a data unit of at most 2^20 blocks; and a block at least, to steal from.
inline constexpr std::uint64_t xts_most_text_len = std::uint64_t{16} << 20;
inline constexpr std::uint64_t xts_least_text_len = 16;

// Pointers are borrowed until the run is over (for device memory: until the stream has passed it). `in` and `out` are
// the same or do not overlap. All lengths are in bytes.
struct Message {
  const Key* key = nullptr;
  Direction direction = Direction::encrypt;
  Padding padding = Padding::none;
  Memory memory = Memory::host;
  const std::uint8_t* in = nullptr;
  std::size_t in_len = 0;
  std::uint8_t* out = nullptr;
  std::size_t out_len = 0;  // room at out: at least output_len(); decryption with padding needs room for in_len
  const std::uint8_t* iv = nullptr;
  std::size_t iv_len = 0;
  const std::uint8_t* aad = nullptr;
  std::size_t aad_len = 0;
  std::uint8_t* tag = nullptr;  // AEAD: written by encrypt, read by decrypt
  std::size_t tag_len = 0;
  // AEAD decryption: write the tag that the text should have, all 16 bytes of it, and the plaintext whatever it is. For
  // src/transfer, which checks the tag before anyone sees the text. All messages of a group of a plan agree.
  bool compute_tag = false;

  const Algorithm& algorithm() const { return key->algorithm(); }

  // Whether nobody may see the text before its tag was found right.
  bool is_authenticated_decryption() const { return algorithm().is_aead() && direction == Direction::decrypt; }

  // Bytes that the cipher produces. Decryption with padding then takes the padding off.
  std::size_t output_len() const {
    return warpcipher::output_len(in_len, padding == Padding::pkcs7 && direction == Direction::encrypt,
                                  algorithm().block_len());
  }

  // The number of units (algorithm().unit_len() bytes each) the plan counts. The last unit of an XTS message also takes
  // the short block that ciphertext stealing makes.
  std::size_t units() const {
    const int log = std::countr_zero(algorithm().unit_len());  // 1, 8 or 16: a division takes longer than all the rest
    if (algorithm().mode.id == Mode::xts) return in_len >> log;
    return (output_len() + algorithm().unit_len() - 1) >> log;
  }
};

// Whether check_messages() lets the message pass by itself.
bool is_right(const Message& message);

// Throws Error{invalid_argument} on the first message that cannot be right: key missing, lengths outside the mode's,
// output too small, buffers that partly overlap, a message that
// writes where another reads or writes, memory kinds that differ, a GCM nonce used twice under one key to
// encrypt. The text names the message by its index when there are several. Nothing has been written by then.
void check_messages(std::span<const Message> messages);

}  // namespace warpcipher
