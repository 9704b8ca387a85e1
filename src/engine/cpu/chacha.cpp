// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/chacha.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "batch/tag.hpp"
#include "cipher/chacha.hpp"
#include "cipher/poly1305.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/context.hpp"

namespace warpcipher {
namespace {

// libcrypto encrypts a whole update before it hashes it: updates of this size find their text in the first cache.
constexpr std::size_t update_len = 16384;

// What is kept of a key: pools of libcrypto contexts.
class ChaChaKey final : public KeyState {
 public:
  explicit ChaChaKey(const Key& key)
      : encrypt_(fetch_cipher(CipherId::chacha20, key.algorithm().mode.id), key.bytes(), Direction::encrypt),
        decrypt_(fetch_cipher(CipherId::chacha20, key.algorithm().mode.id), key.bytes(), Direction::decrypt) {}

  static ChaChaKey& of(const Key& key) {
    return key.state<ChaChaKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<ChaChaKey>(k); });
  }

  ContextPool& contexts(Direction direction) { return direction == Direction::encrypt ? encrypt_ : decrypt_; }

 private:
  ContextPool encrypt_, decrypt_;
};

// The key and the nonce of 12 bytes with which ChaCha20 runs a message of an AEAD.
struct MessageKey {
  std::uint8_t key[chacha::key_len];
  std::uint8_t nonce[chacha::nonce_len];
};

Secret<MessageKey> message_key(const Message& m) {
  Secret<MessageKey> made;
  if (m.algorithm().cipher.id == CipherId::xchacha20) {
    chacha::derive_key(m.key->bytes(), m.iv, made->key);
    std::memcpy(made->nonce + 4, m.iv + 16, 8);
  } else {
    std::memcpy(made->key, m.key->bytes(), sizeof made->key);
    std::memcpy(made->nonce, m.iv, sizeof made->nonce);
  }
  return made;
}

void start(Context& context, const Message& m) {
  if (m.algorithm().cipher.id != CipherId::xchacha20) return context.start(m.iv);
  const Secret<MessageKey> key = message_key(m);
  context.start(key->key, key->nonce);
}

// Decrypts, and writes the tag that the text should have: libcrypto only compares it.
void compute_tag(const Message& m) {
  const Secret<MessageKey> key = message_key(m);
  const auto make_block = [&](std::uint64_t number, std::uint8_t* out) {
    const auto counter = static_cast<std::uint32_t>(number);
    const Secret<chacha::State> block(chacha::key_stream(chacha::make_state(key->key, counter, key->nonce)));
    chacha::store_words(out, block->words, 16);
  };
  Secret<std::array<std::uint8_t, chacha::block_len>> block;
  make_block(0, block->data());
  Secret<poly1305::Hash> hash(poly1305::Hash::start(block->data()));
  std::uint8_t lengths[16];
  store_le64(lengths, m.aad_len);
  store_le64(lengths + 8, m.in_len);
  hash->add_padded(m.aad, m.aad_len);
  hash->add_padded(m.in, m.in_len);
  hash->add_padded(lengths, sizeof lengths);
  hash->finish(m.tag);
  for (std::size_t at = 0; at < m.in_len; at += chacha::block_len) {
    make_block(1 + at / chacha::block_len, block->data());
    xor_bytes(m.out + at, m.in + at, block->data(), std::min(chacha::block_len, m.in_len - at));
  }
}

}  // namespace

void run_chacha_piece(const Message& m, const Piece& piece) {
  const ContextPool::Lease context = ChaChaKey::of(*m.key).contexts(m.direction).borrow();
  std::uint8_t iv[chacha_iv_len];
  std::memcpy(iv, m.iv, sizeof iv);
  store_le32(iv, load_le32(iv) + static_cast<std::uint32_t>(piece.first_unit));
  context->start(iv);
  context->update(piece.in, piece.out, piece.len);
}

Status run_chacha_message(const Message& m) {
  if (m.compute_tag) {
    compute_tag(m);
    return Status::ok;
  }
  const ContextPool::Lease context = ChaChaKey::of(*m.key).contexts(m.direction).borrow();
  start(*context, m);
  context->update_aad(m.aad, m.aad_len);
  for (std::size_t at = 0; at < m.in_len; at += update_len) {
    context->update(m.in + at, m.out + at, std::min(update_len, m.in_len - at));
  }
  if (m.direction == Direction::encrypt) {
    context->finish_encrypt(m.tag, m.tag_len);
    return Status::ok;
  }
  if (context->finish_decrypt(m.tag, m.tag_len)) return Status::ok;
  secure_wipe(m.out, m.in_len);
  return Status::invalid_tag;
}

}  // namespace warpcipher
