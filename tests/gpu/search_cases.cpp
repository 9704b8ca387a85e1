// SPDX-License-Identifier: Apache-2.0
#include "search_cases.hpp"

#include <algorithm>
#include <span>

namespace warpcipher::search::test {

namespace {

std::vector<std::uint8_t> random_bytes(std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator()());
  return bytes;
}

// A pair of blocks that belongs to a key, with that many known bits.
BlockPair make_pair(CipherId cipher, const std::uint8_t* key, bool decrypt, int known_bits) {
  const int block_bits = 8 * static_cast<int>(cipher_info(cipher).block_len);
  BlockPair pair;
  pair.decrypt = decrypt;
  for (int i = 0; i < block_bits / 8; ++i)
    pair.in[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(generator()());
  transform_block(cipher, key, decrypt, pair.in.data(), pair.expected.data());
  for (int left = known_bits; left > 0;) {
    const std::uint64_t bit = random_below(static_cast<std::uint64_t>(block_bits));
    if ((pair.mask[bit / 8] >> bit % 8 & 1u) != 0) continue;
    pair.mask[bit / 8] = static_cast<std::uint8_t>(pair.mask[bit / 8] | 1u << bit % 8);
    --left;
  }
  return pair;
}

}  // namespace

std::mt19937_64& generator() {
  static std::mt19937_64 instance;
  return instance;
}

std::uint64_t random_below(std::uint64_t n) { return generator()() % n; }

KeyTemplate random_template(CipherId cipher, std::size_t unknown, std::size_t first_byte, std::size_t bytes) {
  KeyTemplate key_template;
  key_template.cipher = cipher;
  key_template.known.fill(0xff);
  const auto value = random_bytes(max_key_len);
  std::copy(value.begin(), value.end(), key_template.value.begin());
  while (unknown > 0) {
    const std::size_t byte = first_byte + random_below(bytes);
    const auto bit = static_cast<std::uint8_t>(1u << random_below(8));
    if ((!is_aes(cipher) && bit == 1) || (key_template.known[byte] & bit) == 0) continue;
    key_template.known[byte] ^= bit;
    --unknown;
  }
  return key_template;
}

KeyTemplate random_keys(CipherId cipher, unsigned keys, std::size_t unknown) {
  KeyTemplate key_template = random_template(cipher, 0, 0, 1);
  while (unknown > 0) {
    const std::size_t byte = random_below(cipher_info(cipher).key_len);
    const auto bit = static_cast<std::uint8_t>(2u << random_below(7));
    if ((keys >> byte / 8 & 1u) == 0 || (key_template.known[byte] & bit) == 0) continue;
    key_template.known[byte] ^= bit;
    --unknown;
  }
  return key_template;
}

std::shared_ptr<const KeyTest> make_test(const KeySpace& space, const KeyNumber& planted, bool decrypt,
                                         int known_bits) {
  std::vector<std::uint8_t> key(space.key_len());
  space.key_at(planted, key.data());
  const BlockPair pair = make_pair(space.cipher(), key.data(), decrypt, known_bits);
  return std::make_shared<const KeyTest>(space.cipher(), std::span(&pair, 1));
}

}  // namespace warpcipher::search::test
