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

const cpu::GcmLaneKey& AesKey::lanes(const cpu::GcmLanes& code) {
  lanes_once_.call([&] {
    auto made = std::make_unique<Secret<cpu::GcmLaneKey>>();
    code.make_key(key_.bytes(), key_.size(), **made);
    lanes_ = std::move(made);
  });
  return **lanes_;
}

}  // namespace warpcipher
