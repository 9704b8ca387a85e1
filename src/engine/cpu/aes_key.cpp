// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/aes_key.hpp"

#include "engine/cpu/piece.hpp"

namespace warpcipher {
namespace {

const std::uint8_t* block_key(const Key& key) {
  return key.algorithm().mode.id == Mode::xts ? key.bytes() + key.size() / 2 : key.bytes();
}

// Nothing without libcrypto: no context is borrowed then.
LibcryptoCipher cipher_of_pool(const Key& key, Mode mode) {
  return Libcrypto::is_here() ? fetch_cipher(key.algorithm().cipher.id, mode) : LibcryptoCipher{nullptr, false};
}

// a^(2^128 - 2) = 1 / a (Fermat): the product of the squares a^2, a^4, ... a^(2^127).
gf128::Element invert(gf128::Element a) {
  gf128::Element result = gf128::gcm_one;
  for (int i = 1; i < 128; ++i) {
    a = gf128::gcm_square(a);
    result = gf128::gcm_multiply(result, a);
  }
  return result;
}

}  // namespace

gf128::Element length_block(std::uint64_t first_bytes, std::uint64_t second_bytes) {
  return {8 * first_bytes, 8 * second_bytes};
}

gf128::Element solve_iv(const GcmConstants& constants, gf128::Element counter0) {
  const gf128::Element hashed = gf128::gcm_multiply(counter0, constants.inverse);
  return gf128::gcm_multiply(gf128::add(hashed, length_block(0, 16)), constants.inverse);
}

gf128::Element advance_counter(gf128::Element counter, std::uint64_t n) {
  const std::uint64_t high_part = counter.low & 0xffffffff00000000u;
  return {counter.high, high_part | ((counter.low + n) & 0xffffffffu)};
}

bool has_own_aes() {
  return !cpu::aes_lanes_list().empty() && !cpu::gcm_lanes_list().empty() && cpu::serial_code() != nullptr;
}

AesKey::AesKey(const Key& key)
    : symmetric_(key.algorithm().mode.id == Mode::ctr || key.algorithm().mode.id == Mode::ofb),
      encrypt_(cipher_of_pool(key, key.algorithm().mode.id), key.bytes(), Direction::encrypt),
      decrypt_(cipher_of_pool(key, key.algorithm().mode.id), key.bytes(), Direction::decrypt),
      encrypt_blocks_(cipher_of_pool(key, Mode::ecb), block_key(key), Direction::encrypt),
      decrypt_blocks_(cipher_of_pool(key, Mode::ecb), block_key(key), Direction::decrypt),
      key_(key) {}

const GcmConstants& AesKey::gcm() {
  gcm_once_.call([this] {
    gcm_->hash_key = encrypt_element({0, 0});
    gcm_->inverse = invert(gcm_->hash_key);
    gcm_->tile_power = gf128::gcm_power(gcm_->hash_key, cpu_tile_units);
    gcm_->hash_only_mask = encrypt_element({0, 1});
  });
  return *gcm_;
}

gf128::Element AesKey::encrypt_element(gf128::Element block) {
  std::uint8_t bytes[16];
  gf128::store(bytes, block);
  if (Libcrypto::is_here()) {
    encrypt_blocks_.borrow()->update(bytes, bytes, 16);
  } else {
    const cpu::AesLanes& code = *cpu::aes_lanes_list().front();
    code.ecb_encrypt(aes_lanes(code), nullptr, bytes, bytes, 16, false);
  }
  const gf128::Element result = gf128::load(bytes);
  secure_wipe(bytes, sizeof bytes);
  return result;
}

const cpu::GcmLaneKey& AesKey::gcm_lanes(const cpu::GcmLanes& code) {
  gcm_lanes_once_.call([&] {
    auto made = std::make_unique<Secret<cpu::GcmLaneKey>>();
    code.make_key(key_.bytes(), key_.size(), **made);
    gcm_lanes_ = std::move(made);
  });
  return **gcm_lanes_;
}

const cpu::AesLaneKey& AesKey::aes_lanes(const cpu::AesLanes& code) {
  aes_lanes_once_.call([&] {
    auto made = std::make_unique<Secret<cpu::AesLaneKey>>();
    const bool xts = key_.algorithm().mode.id == Mode::xts;
    const std::size_t key_len = key_.algorithm().cipher.key_len;
    code.make_key(key_.bytes(), xts ? key_.bytes() + key_len : nullptr, key_len, **made);
    aes_lanes_ = std::move(made);
  });
  return **aes_lanes_;
}

}  // namespace warpcipher
