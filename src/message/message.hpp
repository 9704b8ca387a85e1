// SPDX-License-Identifier: Apache-2.0
// A message: one call's worth of work, and the checks it must pass before any engine sees it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "message/key.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

enum class Padding : std::uint8_t { none, pkcs7 };

// Where in, out and tag lie. IV and AAD are always in host memory.
enum class Memory : std::uint8_t { host, device };

// No buffer is longer: a process has at most 2^56 bytes of addresses on any processor or GPU of today. A longer length
// is usually a caller's subtraction that wrapped below zero. With this limit the sum of a few lengths never wraps. (SP
// 800-38D, section 5.2.1.1, takes IVs and AAD of up to 2^61 - 1 bytes.)
inline constexpr std::uint64_t most_buffer_len = std::uint64_t{1} << 56;

// Throws Error{invalid_argument} that names `what` if a length from outside is longer than that. Code that adds lengths
// calls this first; check_messages() does so for messages.
void check_buffer_len(const char* what, std::uint64_t len);

// Throws Error{invalid_argument} if a batch cannot have this many messages: plans number them with 32 bits. Code that
// allocates memory for each message calls this first.
void check_message_count(std::uint64_t count);

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
  // AEAD decryption: write the tag that the text should have, all 16 bytes, and write the plaintext whether or not the
  // tag matches. For src/flow, which checks the tag before anyone sees the text. All messages of a group have the
  // same value. GCM-SIV counts from the tag that came with the text: then the IV is nonce || tag, 28 bytes.
  bool compute_tag = false;
  // ChaCha20-Poly1305, for src/flow: the text is a part of a longer one and begins `first_block` blocks of key
  // stream after its beginning. The tag is the part's share of the hash, poly1305::sum_len bytes at a multiple
  // of 4: the lengths are not hashed, and nothing is added to the sum. All messages of a group are parts, or none is.
  // The engines `reference` and `cuda` know of it.
  bool is_part = false;
  std::uint32_t first_block = 0;

  const Algorithm& algorithm() const { return key->algorithm(); }

  // Whether nobody may see the text before its tag has been verified.
  bool is_authenticated_decryption() const { return algorithm().is_aead() && direction == Direction::decrypt; }

  // Bytes that the cipher produces. Decryption with padding then removes the padding.
  std::size_t output_len() const {
    return warpcipher::output_len(in_len, padding == Padding::pkcs7 && direction == Direction::encrypt,
                                  algorithm().block_len());
  }

  // The number of units (algorithm().unit_len() bytes each) the plan counts. With ciphertext
  // stealing the last unit also takes the short block.
  std::size_t units() const {
    const int log = std::countr_zero(algorithm().unit_len());  // 1, 8, 16 or 64: a division is slow
    if (algorithm().mode.steals) return in_len >> log;
    return (output_len() + algorithm().unit_len() - 1) >> log;
  }
};

// Whether the message passes check_messages() by itself.
bool is_right(const Message& message);

// Throws Error{invalid_argument} on the first wrong message: a missing key, a length that the mode does not allow, an
// output that is too small, buffers that partly overlap, a message that writes where another reads or writes, different
// kinds of memory, a nonce of GCM or ChaCha20-Poly1305 used twice under one key to encrypt. If there are several
// messages the text names the wrong one by its index. Nothing has been written then.
void check_messages(std::span<const Message> messages);

// A host engine's, or src/flow's, use of the tag that it has computed for an AEAD message.

// Encryption: writes the tag (16 bytes). Decryption: compares it in constant time with the given one. False when they
// differ: then the caller must wipe the text.
[[nodiscard]] inline bool settle_tag(const Message& message, const std::uint8_t* tag) {
  if (message.direction == Direction::decrypt && !message.compute_tag) {
    return equal_constant_time(tag, message.tag, message.tag_len);
  }
  std::memcpy(message.tag, tag, message.tag_len);
  return true;
}

// Wipes the text where the tag does not match.
[[nodiscard]] inline Status settle(const Message& message, const std::uint8_t* tag) {
  if (settle_tag(message, tag)) return Status::ok;
  secure_wipe(message.out, message.in_len);
  return Status::invalid_tag;
}

// The columnar form of a batch: many messages of one algorithm and direction, described by arrays.

// As wc_columns in warpcipher.h, which says what each field means; a span that is absent is empty.
struct Columns {
  Direction direction = Direction::encrypt;
  Padding padding = Padding::none;
  Memory memory = Memory::host;             // of in and out
  Memory columns_memory = Memory::host;     // of all other arrays, and of the results
  std::span<const Key* const> keys;         // of one algorithm; or
  const Algorithm* algorithm = nullptr;     // this one, and
  std::span<const std::uint8_t> key_bytes;  // the bytes of its keys, one after another
  std::span<const std::uint32_t> key_index;
  std::size_t count = 0;
  std::span<const std::uint8_t> in;
  std::span<const std::uint64_t> in_offsets;
  std::span<const std::uint64_t> in_lengths;
  std::span<std::uint8_t> out;
  std::span<const std::uint64_t> out_offsets;
  std::span<const std::uint8_t> ivs;
  std::size_t iv_len = 0;
  std::span<const std::uint8_t> aad;
  std::span<const std::uint64_t> aad_offsets;
  std::span<const std::uint64_t> aad_lengths;
  std::size_t tag_len = 0;
  // Each text has its own memory. `in` and `out` then span all of them: see MessageColumns.
  bool scattered = false;
  std::uint64_t texts_len = 0;  // of all inputs, where texts are scattered

  const Algorithm& algorithm_of_all() const { return algorithm != nullptr ? *algorithm : keys[0]->algorithm(); }
  std::size_t key_count() const { return algorithm != nullptr ? key_bytes.size() / algorithm->key_len() : keys.size(); }
};

// The result of a message.

struct Result {
  Status status = Status::ok;  // ok, invalid_tag or invalid_padding
  std::size_t written = 0;     // bytes of text at out; 0 when status is not ok
};

}  // namespace warpcipher
