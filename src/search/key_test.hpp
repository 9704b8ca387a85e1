// SPDX-License-Identifier: Apache-2.0
// Distinguishes the right key from wrong ones: pairs of blocks that belong together, fully or partly known. In CBC
// and CTR the IV, the block before or the counter is added first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "search/key_space.hpp"

namespace warpcipher::search {

inline constexpr std::size_t max_block_len = 16;

// The right key transforms `in` into `expected` wherever `mask` has ones. `in` is fully known: the plaintext (decrypt
// false), or the ciphertext of a partly known plaintext (decrypt true). Bytes past the block's end are zero.
struct BlockPair {
  bool decrypt = false;
  std::array<std::uint8_t, max_block_len> in{};
  std::array<std::uint8_t, max_block_len> expected{};
  std::array<std::uint8_t, max_block_len> mask{};
};

class KeyTest {
 public:
  // Throws Error{invalid_argument} without a pair, or where a mask is all zeros.
  KeyTest(CipherId cipher, std::span<const BlockPair> pairs);

  CipherId cipher() const { return cipher_; }
  std::size_t block_len() const { return block_len_; }

  // The pair with the most known bits comes first: an engine tests this pair, and may leave the others to passes(). If
  // its mask is all ones, decrypt is false; an engine that prefers to decrypt exchanges in and expected.
  std::span<const BlockPair> pairs() const { return pairs_; }

  // Bits compared by the first pair, and by all.
  int first_bits() const { return first_bits_; }
  int bits() const { return bits_; }

  // Whether a key of the cipher's length transforms every pair correctly. On the host, in time that depends on no
  // secret.
  bool passes(const std::uint8_t* key) const;

 private:
  CipherId cipher_;
  std::size_t block_len_;
  std::vector<BlockPair> pairs_;
  int first_bits_ = 0;
  int bits_ = 0;
};

// One block under one key; in and out are block_len bytes and may be the same. Constant time, on any processor.
void transform_block(CipherId cipher, const std::uint8_t* key, bool decrypt, const std::uint8_t* in, std::uint8_t* out);

// Known-key stripping. Where two of the keys of triple DES are known, the search is one for a single DES key: the known
// keys are removed from the plaintext and the ciphertext beforehand. E(K3) D(K2) E(K1) X = Y means
//
//   K1 unknown   E(K1) X                = E(K2) D(K3) Y
//   K2 unknown   E(K2) D(K3) Y          = E(K1) X
//   K3 unknown   E(K3) (D(K2) E(K1) X)  = Y

// A search for a DES key that replaces one of triple DES. Both number their keys alike. The test has the first pair
// and no other: the original search must test a key that passes.
struct StrippedSearch {
  std::shared_ptr<const KeySpace> space;
  std::shared_ptr<const KeyTest> test;
};

// None where the cipher is not triple DES, where two keys have unknown bits or K1 of two-key triple DES has some, or
// where the first pair has unknown bits on a side from which a known key would have to be removed.
std::optional<StrippedSearch> strip_known_keys(const KeySpace& space, const KeyTest& test);

}  // namespace warpcipher::search
