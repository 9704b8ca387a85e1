// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/aes_key.hpp"

#include "engine/cpu/aes_serial_lanes.hpp"

namespace warpcipher {
namespace {

const std::uint8_t* block_key(const Key& key) {
  return key.algorithm().mode.id == Mode::xts ? key.bytes() + key.size() / 2 : key.bytes();
}

// Nothing where there is no libcrypto: no context is borrowed then.
LibcryptoCipher cipher_of_pool(const Key& key, Mode mode) {
  return Libcrypto::is_here() ? fetch_cipher(key.algorithm().cipher.id, mode) : LibcryptoCipher{nullptr, false};
}

}  // namespace

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
  gcm_once_.call(
      [this] { *gcm_ = make_gcm_constants([this](gf128::Element block) { return encrypt_element(block); }); });
  return *gcm_;
}

gf128::Element AesKey::encrypt_element(gf128::Element block) {
  std::uint8_t bytes[16];
  gf128::store(bytes, block);
  if (Libcrypto::is_here()) {
    encrypt_blocks_.borrow()->update(bytes, bytes, 16);
  } else {
    const cpu::AesLanes& code = *cpu::aes_lanes_list().front();
    code.ecb_encrypt(aes_lanes(code), nullptr, bytes, bytes, 16);
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
