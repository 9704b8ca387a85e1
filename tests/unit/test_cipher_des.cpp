// SPDX-License-Identifier: Apache-2.0
// DES and triple DES: published values and the cipher's own symmetries on the obvious form, then the bitsliced form
// against it for each word type, with one key for all blocks and with a key for each.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "cipher/des.hpp"
#include "cipher/des_bitslice.hpp"

namespace warpcipher::des {
namespace {

using Block = std::array<std::uint8_t, 8>;

Block block_of(std::uint64_t value) {
  Block block{};
  store_be64(block.data(), value);
  return block;
}

std::uint64_t encrypt(std::uint64_t key, std::uint64_t plaintext) {
  Block block = block_of(plaintext);
  reference::encrypt_block(reference::expand_key(block_of(key).data(), 8), block.data(), block.data());
  return load_be64(block.data());
}

std::uint64_t decrypt(std::uint64_t key, std::uint64_t ciphertext) {
  Block block = block_of(ciphertext);
  reference::decrypt_block(reference::expand_key(block_of(key).data(), 8), block.data(), block.data());
  return load_be64(block.data());
}

// SP 800-17, appendix B, table 1: key 01..01, one plaintext bit set, from the first.
TEST(DesTest, VariablePlaintextKnownAnswers) {
  constexpr std::uint64_t ciphertexts[] = {0x95f8a5e5dd31d900u, 0xdd7f121ca5015619u, 0x2e8653104f3834eau,
                                           0x4bd388ff6cd81d4fu, 0x20b9e767b2fb1456u, 0x55579380d77138efu,
                                           0x6cc5defaaf04512fu, 0x0d9f279ba5d87260u, 0xd9031b0271bd5a0au,
                                           0x424250b37c3dd951u, 0xb8061b7ecd9a21e5u, 0xf15d0f286b65bd28u};
  std::uint64_t plaintext = 0x8000000000000000u;
  for (const std::uint64_t ciphertext : ciphertexts) {
    EXPECT_EQ(encrypt(0x0101010101010101u, plaintext), ciphertext);
    EXPECT_EQ(decrypt(0x0101010101010101u, ciphertext), plaintext);
    plaintext >>= 1;
  }
}

// SP 800-67 revision 1, appendix B.
TEST(DesTest, TripleDesExample) {
  std::array<std::uint8_t, 24> key{};
  store_be64(key.data(), 0x0123456789abcdefu);
  store_be64(key.data() + 8, 0x23456789abcdef01u);
  store_be64(key.data() + 16, 0x456789abcdef0123u);
  const reference::Schedule schedule = reference::expand_key(key.data(), key.size());
  constexpr std::uint64_t plaintexts[] = {0x5468652071756663u, 0x6b2062726f776e20u, 0x666f78206a756d70u};
  constexpr std::uint64_t ciphertexts[] = {0xa826fd8ce53b855fu, 0xcce21c8112256fe6u, 0x68d5c05dd9b6b900u};
  for (std::size_t i = 0; i < 3; ++i) {
    Block block = block_of(plaintexts[i]);
    reference::encrypt_block(schedule, block.data(), block.data());
    EXPECT_EQ(load_be64(block.data()), ciphertexts[i]);
    reference::decrypt_block(schedule, block.data(), block.data());
    EXPECT_EQ(load_be64(block.data()), plaintexts[i]);
  }
}

TEST(DesTest, ComplementedKeyAndBlockGiveTheComplement) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t key = random();
    const std::uint64_t plaintext = random();
    EXPECT_EQ(encrypt(~key, ~plaintext), ~encrypt(key, plaintext));
  }
}

// FIPS 74, section 3.6.
TEST(DesTest, WeakKeysUndoThemselvesAndSemiWeakKeysEachOther) {
  constexpr std::uint64_t weak[] = {0x0101010101010101u, 0xfefefefefefefefeu, 0xe0e0e0e0f1f1f1f1u, 0x1f1f1f1f0e0e0e0eu};
  constexpr std::uint64_t semi_weak[][2] = {
      {0x01fe01fe01fe01feu, 0xfe01fe01fe01fe01u}, {0x1fe01fe00ef10ef1u, 0xe01fe01ff10ef10eu},
      {0x01e001e001f101f1u, 0xe001e001f101f101u}, {0x1ffe1ffe0efe0efeu, 0xfe1ffe1ffe0efe0eu},
      {0x011f011f010e010eu, 0x1f011f010e010e01u}, {0xe0fee0fef1fef1feu, 0xfee0fee0fef1fef1u}};
  constexpr std::uint64_t plaintext = 0x0123456789abcdefu;
  for (const std::uint64_t key : weak) EXPECT_EQ(encrypt(key, encrypt(key, plaintext)), plaintext);
  for (const auto& pair : semi_weak) EXPECT_EQ(encrypt(pair[1], encrypt(pair[0], plaintext)), plaintext);
}

TEST(DesTest, ParityBitsAreIgnored) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t key = random();
    EXPECT_EQ(encrypt(key, 0x1122334455667788u), encrypt(key ^ (random() & 0x0101010101010101u), 0x1122334455667788u));
  }
}

TEST(DesTest, EqualKeysReduceTripleDesToDes) {
  std::array<std::uint8_t, 24> key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(0x10 + i % 8 * 3);
  for (const std::size_t key_len : {std::size_t{16}, std::size_t{24}}) {
    Block block = block_of(0x0102030405060708u);
    reference::encrypt_block(reference::expand_key(key.data(), key_len), block.data(), block.data());
    EXPECT_EQ(load_be64(block.data()), encrypt(load_be64(key.data()), 0x0102030405060708u));
  }
}

using Vector128 [[gnu::vector_size(16)]] = std::uint64_t;

template <class Word>
class DesBitsliceTest : public ::testing::Test {
 protected:
  static constexpr std::size_t lanes = 8 * sizeof(Word);
  using Blocks = std::array<Block, lanes>;

  DesBitsliceTest() {
    for (Block& block : input_) fill(block);
  }

  template <class Bytes>
  void fill(Bytes& bytes) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
  }

  // Blocks to the words that bitslice::transpose takes, and back.
  static void load(Word (&words)[64], const Blocks& blocks) {
    if constexpr (sizeof(Word) == 4) {
      for (std::size_t j = 0; j < lanes; ++j) {
        words[j] = load_le32(blocks[j].data());
        words[32 + j] = load_le32(blocks[j].data() + 4);
      }
    } else {
      std::memcpy(words, blocks.data(), sizeof words);
    }
    bitslice::transpose(words);
  }

  static void store(Blocks& blocks, Word (&words)[64]) {
    bitslice::transpose(words);
    if constexpr (sizeof(Word) == 4) {
      for (std::size_t j = 0; j < lanes; ++j) {
        store_le32(blocks[j].data(), words[j]);
        store_le32(blocks[j].data() + 4, words[32 + j]);
      }
    } else {
      std::memcpy(blocks.data(), words, sizeof words);
    }
  }

  static Block expected(const std::uint8_t* key, std::size_t key_len, bool decrypt, const Block& in) {
    const reference::Schedule schedule = reference::expand_key(key, key_len);
    Block out{};
    if (decrypt) {
      reference::decrypt_block(schedule, in.data(), out.data());
    } else {
      reference::encrypt_block(schedule, in.data(), out.data());
    }
    return out;
  }

  std::mt19937 random_{4};
  Blocks input_{};
};

using Words = ::testing::Types<std::uint32_t, std::uint64_t, Vector128>;
TYPED_TEST_SUITE(DesBitsliceTest, Words);

TYPED_TEST(DesBitsliceTest, OneKeyForAllBlocks) {
  using Mask = std::conditional_t<sizeof(TypeParam) == 4, std::uint32_t, std::uint64_t>;
  for (const std::size_t key_len : {std::size_t{8}, std::size_t{16}, std::size_t{24}}) {
    for (const bool decrypt : {false, true}) {
      std::array<std::uint8_t, 24> key{};
      this->fill(key);
      std::array<Mask, 3 * bitslice::schedule_bits> masks{};
      bitslice::expand_key(masks.data(), key.data(), key_len, decrypt);
      TypeParam planes[64];
      this->load(planes, this->input_);
      bitslice::transform(planes, bitslice::MaskSchedule<Mask>{masks.data()}, bitslice::pass_count(key_len));
      typename TestFixture::Blocks output{};
      this->store(output, planes);
      for (std::size_t j = 0; j < output.size(); ++j) {
        ASSERT_EQ(output[j], this->expected(key.data(), key_len, decrypt, this->input_[j]))
            << "key length " << key_len << (decrypt ? ", decryption" : ", encryption") << ", block " << j;
      }
    }
  }
}

TYPED_TEST(DesBitsliceTest, AKeyForEachBlock) {
  for (const std::size_t key_len : {std::size_t{8}, std::size_t{16}, std::size_t{24}}) {
    for (const bool decrypt : {false, true}) {
      std::array<std::array<std::uint8_t, 24>, TestFixture::lanes> keys{};
      for (auto& key : keys) this->fill(key);
      const int passes = bitslice::pass_count(key_len);
      std::vector<std::array<TypeParam, 64>> key_planes(static_cast<std::size_t>(passes));
      for (int pass = 0; pass < passes; ++pass) {
        typename TestFixture::Blocks parts{};
        for (std::size_t j = 0; j < keys.size(); ++j) {
          std::memcpy(parts[j].data(), keys[j].data() + bitslice::pass_of(key_len, decrypt, pass).key_offset, 8);
        }
        TypeParam words[64];
        this->load(words, parts);
        std::memcpy(key_planes[static_cast<std::size_t>(pass)].data(), words, sizeof words);
      }
      TypeParam planes[64];
      this->load(planes, this->input_);
      const std::uint8_t* indices = bitslice::subkey_planes.data() + (decrypt ? bitslice::schedule_bits : 0);
      bitslice::transform(planes, bitslice::PlaneSchedule<TypeParam>{key_planes[0].data(), indices}, passes);
      typename TestFixture::Blocks output{};
      this->store(output, planes);
      for (std::size_t j = 0; j < output.size(); ++j) {
        ASSERT_EQ(output[j], this->expected(keys[j].data(), key_len, decrypt, this->input_[j]))
            << "key length " << key_len << (decrypt ? ", decryption" : ", encryption") << ", block " << j;
      }
    }
  }
}

TYPED_TEST(DesBitsliceTest, TransposeGivesThePlanesOfTheDrawing) {
  TypeParam planes[64];
  this->load(planes, this->input_);
  std::uint64_t first = 0;  // block 0, a bit of each plane
  for (int m = 0; m < 64; ++m) {
    if constexpr (std::is_integral_v<TypeParam>) {
      first |= static_cast<std::uint64_t>(planes[m] & 1u) << m;
    } else {
      first |= (planes[m][0] & 1u) << m;
    }
  }
  EXPECT_EQ(first, load_le64(this->input_[0].data()));
  typename TestFixture::Blocks back{};
  this->store(back, planes);
  EXPECT_EQ(back, this->input_);
}

TEST(DesSboxSubkey, MasksAreThoseOfTheSchedule) {
  std::array<std::uint8_t, 24> key{};
  std::mt19937 generator(5);
  for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(generator());
  for (const std::size_t key_len : {std::size_t{8}, std::size_t{16}, std::size_t{24}}) {
    for (const bool decrypt : {false, true}) {
      std::array<std::uint32_t, 3 * bitslice::schedule_bits> masks{};
      bitslice::expand_key(masks.data(), key.data(), key_len, decrypt);
      const auto bits = static_cast<std::uint32_t>(bitslice::schedule_bits * bitslice::pass_count(key_len));
      for (std::uint32_t i = 0; i < bits; ++i) {
        const SboxSubkey subkey = sbox_subkey(key.data(), key_len, decrypt, i / bitslice::subkey_bits);
        EXPECT_EQ(mask_of_bit(subkey, i % bitslice::subkey_bits), masks[i]) << key_len << decrypt << i;
        EXPECT_EQ((subkey.odd | subkey.even) & 0xc0c0c0c0u, 0u);
      }
    }
  }
}

// The two ways in which keys reach a round name the same bits.
TEST(DesBitsliceKeyTest, MasksAndPlanesNameTheSameBits) {
  std::mt19937 random(5);
  std::array<std::uint8_t, 8> key{};
  for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(random());
  const std::uint64_t key_bits = load_le64(key.data());
  std::array<std::uint32_t, bitslice::schedule_bits> masks{};
  bitslice::expand_masks(masks.data(), key.data(), false);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const std::uint32_t bit = key_bits >> bitslice::subkey_planes[i] & 1u;
    EXPECT_EQ(masks[i], 0u - bit);
    EXPECT_EQ(bitslice::plane_of_position(bitslice::subkey_positions[i]), bitslice::subkey_planes[i]);
  }
}

}  // namespace
}  // namespace warpcipher::des
