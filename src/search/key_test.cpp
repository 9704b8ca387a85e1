// SPDX-License-Identifier: Apache-2.0
#include "search/key_test.hpp"

#include <algorithm>
#include <array>
#include <bit>

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
  if (pairs_.empty()) refuse("no pair of plaintext and ciphertext was given");
  for (BlockPair& pair : pairs_) {
    for (std::size_t i = 0; i < max_block_len; ++i) {
      if (i >= block_len_) pair.in[i] = pair.mask[i] = 0;
      pair.expected[i] &= pair.mask[i];
    }
    const int bits = mask_bits(pair);
    if (bits == 0) refuse("a pair of blocks has no known bit to compare");
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

namespace {

constexpr std::size_t des_key_len = 8;

// Which of the keys have unknown bits or lists: bit i for key i.
unsigned unknown_keys(const KeySpace& space) {
  unsigned keys = 0;
  for (const std::uint16_t bit : space.free_bits()) keys |= 1u << bit / (8 * des_key_len);
  for (const CandidateList& list : space.lists()) keys |= 1u << list.byte / des_key_len;
  return keys;
}

KeyTemplate template_of(const KeyTemplate& whole, std::size_t key) {
  KeyTemplate part;
  part.cipher = CipherId::des;
  std::copy_n(whole.value.begin() + static_cast<std::ptrdiff_t>(des_key_len * key), des_key_len, part.value.begin());
  std::copy_n(whole.known.begin() + static_cast<std::ptrdiff_t>(des_key_len * key), des_key_len, part.known.begin());
  for (const CandidateList& list : whole.lists) {
    if (list.byte / des_key_len == key) part.lists.push_back({list.byte % des_key_len, list.candidates});
  }
  return part;
}

bool is_full(const BlockPair& pair) {
  return std::all_of(pair.mask.begin(), pair.mask.begin() + des_key_len,
                     [](std::uint8_t byte) { return byte == 0xff; });
}

}  // namespace

std::optional<StrippedSearch> strip_known_keys(const KeySpace& space, const KeyTest& test) {
  if (space.cipher() != CipherId::des_ede2 && space.cipher() != CipherId::des_ede3) return std::nullopt;
  const unsigned unknown = unknown_keys(space);
  if (!std::has_single_bit(unknown)) return std::nullopt;
  const auto index = static_cast<std::size_t>(std::countr_zero(unknown));
  const bool two_keys = space.cipher() == CipherId::des_ede2;
  if (two_keys && index == 0) return std::nullopt;

  Secret<std::array<std::uint8_t, max_key_len>> key;
  space.key_at(0, key->data());
  const auto apply = [&](std::size_t which, bool decrypt, std::uint8_t* block) {
    const std::size_t offset = two_keys && which == 2 ? 0 : des_key_len * which;
    transform_block(CipherId::des, key->data() + offset, decrypt, block, block);
  };
  BlockPair pair = test.pairs().front();
  const bool full = is_full(pair);
  std::uint8_t* in = pair.in.data();
  std::uint8_t* out = pair.expected.data();
  if (pair.decrypt) {  // the plaintext may be known in part, so all keys are removed from the ciphertext
    if (index != 0) return std::nullopt;
    apply(2, true, in);
    apply(1, false, in);
  } else if (index == 2) {
    apply(0, false, in);
    apply(1, true, in);
  } else if (!full) {
    return std::nullopt;
  } else if (index == 1) {
    apply(0, false, in);
    apply(2, true, out);
    std::swap(pair.in, pair.expected);
  } else {
    apply(2, true, out);
    apply(1, false, out);
  }
  return StrippedSearch{std::make_shared<const KeySpace>(template_of(space.key_template(), index)),
                        std::make_shared<const KeyTest>(CipherId::des, std::span(&pair, 1))};
}

}  // namespace warpcipher::search
