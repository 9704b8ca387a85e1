// SPDX-License-Identifier: Apache-2.0
// The stream of a key: how its blocks are numbered, and how each number is enciphered. For host and device.
//
// A stream has an algorithm, a key of 32 bytes and a number. It is 2^56 bytes long; positions count bytes. Its blocks
// have numbers n of 64 bits, of which the two top bits are a domain:
//
//   00   position / length of a block              the stream
//   10   2^63 + t 2^54 + p / 4, t = 0, 1, ... 255  further words of the element whose word at p was rejected
//   01   2^62 + a 2^54 + position / length         all words once more, the a-th time (fill.cpp)
//
//   chacha20      64 bytes: RFC 8439, counter n mod 2^32, nonce LE32(n >> 32) || LE64(number of the stream)
//   aes-256-ctr   16 bytes: AES-256 of BE64(number of the stream) || BE64(n)
//
// A line is 64 bytes: one block or four.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes.hpp"
#include "cipher/chacha.hpp"
#include "core/bytes.hpp"
#include "core/host_device.hpp"
#include "core/wipe.hpp"

namespace warpcipher::random {

enum class StreamCipher : std::uint8_t { chacha20, aes256 };

inline constexpr std::size_t key_len = 32;
inline constexpr std::size_t line_len = 64;
inline constexpr std::uint64_t stream_len = std::uint64_t{1} << 56;

namespace domain {

inline constexpr std::uint32_t rejections = 256;  // blocks of further words of an element
inline constexpr std::uint32_t attempts = 256;

// The first block of an attempt to draw all words; attempt 0 is the stream itself.
WARPCIPHER_HD constexpr std::uint64_t of_attempt(std::uint32_t attempt) {
  return attempt == 0 ? 0 : std::uint64_t{1} << 62 | std::uint64_t{attempt} << 54;
}

// Block t of the further words of the element whose word lies at `position`, a multiple of 4.
WARPCIPHER_HD constexpr std::uint64_t of_rejection(std::uint64_t position, std::uint32_t t) {
  return std::uint64_t{1} << 63 | std::uint64_t{t} << 54 | position / 4;
}

}  // namespace domain

// ChaCha20: the words of the block, of which the counter and the first word of the nonce are block 0's.
struct ChaChaStream {
  static constexpr std::size_t block_len = chacha::block_len;

  chacha::State state;

  WARPCIPHER_INLINE constexpr chacha::State of_block(std::uint64_t n) const {
    chacha::State block = state;
    block.words[12] = static_cast<std::uint32_t>(n);
    block.words[13] = static_cast<std::uint32_t>(n >> 32);
    return block;
  }

  // The words of block n. (A GPU has one copy of the code: it is for the few.)
  WARPCIPHER_HD void block(std::uint64_t n, std::uint32_t (&words)[16]) const {
    const chacha::State made = chacha::key_stream(of_block(n));
    for (int i = 0; i < 16; ++i) words[i] = made.words[i];
  }
};

struct AesStream {
  static constexpr std::size_t block_len = aes::block_len;

  aes::Schedule schedule;
  std::uint64_t number;

  WARPCIPHER_HD void block(std::uint64_t n, std::uint32_t (&words)[4]) const {
    std::uint8_t bytes[16];
    store_be64(bytes, number);
    store_be64(bytes + 8, n);
    aes::encrypt_block(schedule, bytes, bytes);
    for (int i = 0; i < 4; ++i) words[i] = load_le32(bytes + 4 * i);
  }
};

// The caller's input: plain data, which its holder wipes.
struct StreamKey {
  StreamCipher cipher;
  std::uint8_t key[key_len];
  std::uint64_t number;

  ChaChaStream chacha() const {
    std::uint8_t nonce[chacha::nonce_len] = {};
    store_le64(nonce + 4, number);
    return {chacha::make_state(key, 0, nonce)};
  }
  AesStream aes() const { return {aes::expand_key(key, key_len), number}; }
};

// The further words of an element, one after another.
template <class Stream>
class FurtherWords {
 public:
  WARPCIPHER_INLINE constexpr FurtherWords(const Stream& stream, std::uint64_t position) : stream_(stream), position_(position) {}

  // How many words there are. After them a word is taken that should be rejected: the chance is below 2^-256.
  template <class Word>
  static constexpr std::uint32_t count() {
    return static_cast<std::uint32_t>(domain::rejections * Stream::block_len / sizeof(Word));
  }

  template <class Word>
  WARPCIPHER_HD Word get(std::uint32_t index) const {
    constexpr auto of_block = static_cast<std::uint32_t>(Stream::block_len / sizeof(Word));
    std::uint32_t words[Stream::block_len / 4];
    stream_.block(domain::of_rejection(position_, index / of_block), words);
    const std::uint32_t at = index % of_block * (sizeof(Word) / 4);
    if constexpr (sizeof(Word) == 8) {
      return std::uint64_t{words[at + 1]} << 32 | words[at];
    } else {
      return words[at];
    }
  }

 private:
  const Stream& stream_;
  const std::uint64_t position_;
};

}  // namespace warpcipher::random
