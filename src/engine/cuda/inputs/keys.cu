// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/keys.hpp"

#include "cipher/aes_tables.hpp"

namespace warpcipher::cuda {

AesKeyState::AesKeyState(const Key& key) {
  const Algorithm& algorithm = key.algorithm();
  const std::size_t cipher_key_len = algorithm.cipher.key_len;
  schedule = aes::expand_key(key.bytes(), cipher_key_len);
  const Secret<aes::Schedule> decryption(aes::to_decryption_schedule(schedule));
  aes::to_column_words(schedule, encryption_words);
  aes::to_column_words(*decryption, decryption_words);
  if (algorithm.mode.id == Mode::xts) {  // the second half: IEEE 1619, section 5.1
    const Secret<aes::Schedule> tweaks(aes::expand_key(key.bytes() + cipher_key_len, cipher_key_len));
    aes::to_column_words(*tweaks, tweak_words);
  }
  if (algorithm.mode.id == Mode::gcm) {
    std::uint8_t block[16] = {};
    aes::encrypt_block(schedule, block, block);
    hash_key = gf128::load(block);
    secure_wipe(block, sizeof block);
  }
}

AesKeyState::~AesKeyState() {
  secure_wipe(&schedule, sizeof schedule);
  secure_wipe(&hash_key, sizeof hash_key);
  secure_wipe(encryption_words, sizeof encryption_words);
  secure_wipe(decryption_words, sizeof decryption_words);
  secure_wipe(tweak_words, sizeof tweak_words);
}

const AesKeyState& aes_key_state(const Key& key) {
  return key.state<AesKeyState>(EngineId::cuda, [](const Key& k) { return std::make_unique<AesKeyState>(k); });
}

}  // namespace warpcipher::cuda
