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

// libcrypto encrypts a whole update before it hashes it: of this size the text is still in a cache. Shorter ones are
// slower: of 1 MiB on Zen 3, 2.18 GB/s by 16 KiB, 2.20 by 256 KiB or at once.
constexpr std::size_t update_len = std::size_t{256} << 10;

// A call of libcrypto takes longer than the work of own code on this many bytes of text and AAD.
constexpr std::size_t most_short = 128;

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

// By own code, block by block.
class Blocks {
 public:
  Blocks(const std::uint8_t* key, const std::uint8_t* nonce) : state_(chacha::make_state(key, 0, nonce)) {}

  void make(std::uint32_t number, std::uint8_t* out) {
    state_->words[12] = number;
    const Secret<chacha::State> block(chacha::key_stream(*state_));
    chacha::store_words(out, block->words, 16);
  }

  // Adds the key stream from block `number` on.
  void apply(std::uint32_t number, const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    Secret<std::array<std::uint8_t, chacha::block_len>> block;
    for (std::size_t at = 0; at < len; at += chacha::block_len) {
      make(number++, block->data());
      xor_bytes(out + at, in + at, block->data(), std::min(chacha::block_len, len - at));
    }
  }

 private:
  Secret<chacha::State> state_;
};

void make_tag(const Message& m, Blocks& blocks, const std::uint8_t* ciphertext, std::uint8_t* tag) {
  Secret<std::array<std::uint8_t, chacha::block_len>> key;
  blocks.make(0, key->data());
  Secret<poly1305::Hash> hash(poly1305::Hash::start(key->data()));
  std::uint8_t lengths[16];
  store_le64(lengths, m.aad_len);
  store_le64(lengths + 8, m.in_len);
  hash->add_padded(m.aad, m.aad_len);
  hash->add_padded(ciphertext, m.in_len);
  hash->add_padded(lengths, sizeof lengths);
  hash->finish(tag);
}

bool is_own(const Message& m, std::size_t len) { return m.compute_tag || len <= most_short || !Libcrypto::is_here(); }

}  // namespace

void run_chacha_piece(const Message& m, const Piece& piece) {
  const std::uint32_t first = load_le32(m.iv) + static_cast<std::uint32_t>(piece.first_unit);
  if (is_own(m, piece.len)) return Blocks(m.key->bytes(), m.iv + 4).apply(first, piece.in, piece.out, piece.len);
  const ContextPool::Lease context = ChaChaKey::of(*m.key).contexts(m.direction).borrow();
  std::uint8_t iv[chacha_iv_len];
  std::memcpy(iv, m.iv, sizeof iv);
  store_le32(iv, first);
  context->start(iv);
  context->update(piece.in, piece.out, piece.len);
}

Status run_chacha_by_own(const Message& m) {
  const Secret<MessageKey> key = message_key(m);
  Blocks blocks(key->key, key->nonce);
  Secret<std::array<std::uint8_t, poly1305::tag_len>> tag;
  if (m.direction == Direction::encrypt) {
    blocks.apply(1, m.in, m.out, m.in_len);
    make_tag(m, blocks, m.out, m.tag);
    return Status::ok;
  }
  make_tag(m, blocks, m.in, tag->data());
  const bool good = settle_tag(m, tag->data());
  if (good) {
    blocks.apply(1, m.in, m.out, m.in_len);
  } else {
    secure_wipe(m.out, m.in_len);
  }
  return good ? Status::ok : Status::invalid_tag;
}

Status run_chacha_by_libcrypto(const Message& m) {
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

Status run_chacha_message(const Message& m) {
  return is_own(m, m.in_len + m.aad_len) ? run_chacha_by_own(m) : run_chacha_by_libcrypto(m);
}

}  // namespace warpcipher
