// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/aes_key.hpp"

namespace warpcipher {
namespace {

const std::uint8_t* block_key(const Key& key) {
  return key.algorithm().mode.id == Mode::xts ? key.bytes() + key.size() / 2 : key.bytes();
}

}  // namespace

AesKey::AesKey(const Key& key)
    : symmetric_(key.algorithm().mode.id == Mode::ctr || key.algorithm().mode.id == Mode::ofb),
      encrypt_(fetch_cipher(key.algorithm().cipher.id, key.algorithm().mode.id), key.bytes(), Direction::encrypt),
      decrypt_(fetch_cipher(key.algorithm().cipher.id, key.algorithm().mode.id), key.bytes(), Direction::decrypt),
      encrypt_blocks_(fetch_cipher(key.algorithm().cipher.id, Mode::ecb), block_key(key), Direction::encrypt),
      decrypt_blocks_(fetch_cipher(key.algorithm().cipher.id, Mode::ecb), block_key(key), Direction::decrypt),
      key_(key) {}

const GcmConstants& AesKey::gcm() {
  gcm_once_.call([this] { *gcm_ = make_gcm_constants(*encrypt_blocks_.borrow()); });
  return *gcm_;
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
