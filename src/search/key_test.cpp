// SPDX-License-Identifier: Apache-2.0
#include "search/key_test.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cipher/aes.hpp"
#include "cipher/des_bitslice.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"

namespace warpcipher::search {

namespace {

int mask_bits(const BlockPair& pair) {
  int bits = 0;
  for (const std::uint8_t byte : pair.mask) bits += std::popcount(byte);
  return bits;
}

// One block in lane 0 of the bitsliced form.
void transform_des(const std::uint8_t* key, std::size_t key_len, bool decrypt, const std::uint8_t* in,
                   std::uint8_t* out) {
  namespace bitslice = des::bitslice;
  struct Masks {
    std::uint64_t words[3 * bitslice::schedule_bits];
  };
  Secret<Masks> masks;
  bitslice::expand_key(masks->words, key, key_len, decrypt);
  std::uint64_t words[64] = {load_le64(in)};
  bitslice::transpose(words);
  bitslice::transform(words, bitslice::MaskSchedule<std::uint64_t>{masks->words}, bitslice::pass_count(key_len));
  bitslice::transpose(words);
  store_le64(out, words[0]);
  secure_wipe(words, sizeof words);
}

}  // namespace

void transform_block(CipherId cipher, const std::uint8_t* key, bool decrypt, const std::uint8_t* in,
                     std::uint8_t* out) {
  const std::size_t key_len = cipher_info(cipher).key_len;
  if (!is_aes(cipher)) return transform_des(key, key_len, decrypt, in, out);
  if (decrypt) {
    const Secret<aes::Schedule> schedule(aes::expand_decryption_key(key, key_len));
    aes::decrypt_block(*schedule, in, out);
  } else {
    const Secret<aes::Schedule> schedule(aes::expand_key(key, key_len));
    aes::encrypt_block(*schedule, in, out);
  }
}

KeyTest::KeyTest(CipherId cipher, std::span<const BlockPair> pairs)
    : cipher_(cipher), block_len_(cipher_info(cipher).block_len), pairs_(pairs.begin(), pairs.end()) {
  if (pairs_.empty()) throw Error(Status::invalid_argument, "no pair of plaintext and ciphertext was given");
  for (BlockPair& pair : pairs_) {
    for (std::size_t i = 0; i < max_block_len; ++i) {
      if (i >= block_len_) pair.in[i] = pair.mask[i] = 0;
      pair.expected[i] &= pair.mask[i];
    }
    const int bits = mask_bits(pair);
    if (bits == 0) throw Error(Status::invalid_argument, "a pair of blocks has no known bit to compare");
    bits_ += bits;
    if (pair.decrypt && bits == 8 * static_cast<int>(block_len_)) {
      std::swap(pair.in, pair.expected);
      pair.decrypt = false;
    }
  }
  std::stable_sort(pairs_.begin(), pairs_.end(),
                   [](const BlockPair& a, const BlockPair& b) { return mask_bits(a) > mask_bits(b); });
  first_bits_ = mask_bits(pairs_.front());
}

bool KeyTest::passes(const std::uint8_t* key) const {
  unsigned difference = 0;
  for (const BlockPair& pair : pairs_) {
    Secret<std::array<std::uint8_t, max_block_len>> out;
    transform_block(cipher_, key, pair.decrypt, pair.in.data(), out->data());
    for (std::size_t i = 0; i < block_len_; ++i) difference |= ((*out)[i] ^ pair.expected[i]) & pair.mask[i];
  }
  return difference == 0;
}

}  // namespace warpcipher::search
