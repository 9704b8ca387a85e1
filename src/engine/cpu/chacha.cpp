// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/chacha.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "cipher/chacha.hpp"
#include "cipher/poly1305.hpp"
#include "core/bytes.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/rule.hpp"
#include "message/message.hpp"

namespace warpcipher {
namespace {

// libcrypto encrypts a whole update before it hashes it: of this size the text is still in a cache. Shorter ones are
// slower: of 1 MiB on Zen 3, 2.18 GB/s by 16 KiB, 2.20 by 256 KiB or at once.
constexpr std::size_t update_len = std::size_t{256} << 10;

// State kept of a key: pools of libcrypto contexts.
class ChaChaKey final : public KeyState {
 public:
  explicit ChaChaKey(const Key& key)
      : encrypt_(CipherId::chacha20, key.algorithm().mode.id, key.bytes(), Direction::encrypt),
        decrypt_(CipherId::chacha20, key.algorithm().mode.id, key.bytes(), Direction::decrypt) {}

  static ChaChaKey& of(const Key& key) {
    return key.state<ChaChaKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<ChaChaKey>(k); });
  }

  ContextPool& contexts(Direction direction) { return direction == Direction::encrypt ? encrypt_ : decrypt_; }

 private:
  ContextPool encrypt_, decrypt_;
};

// A message of an AEAD.
bool derives_key(const Message& m) { return m.algorithm().iv_len == chacha::extended_nonce_len; }

chacha::MessageKey message_key(const Message& m) { return {m.key->bytes(), m.iv, m.algorithm().iv_len}; }

Secret<chacha::State> first_state(const Message& m) { return message_key(m).state(0); }

cpu::ChaChaText text_of(const Message& m) { return {m.aad, m.aad_len, m.in, m.out, m.in_len}; }

const cpu::ChaChaLanes& best_code() { return *cpu::chacha_lanes_list().front(); }

// Messages that would each leave lanes of a group of blocks empty: their blocks run together. Zen 3, AVX2, with 13
// bytes of AAD, us: 64 bytes 0.13 and one by one 0.36, by libcrypto 0.48; 256 bytes 0.33, 0.43, 0.61. From 512 bytes on
// a single message takes no longer: then Poly1305 runs between the rounds.
class ShortMessages {
 public:
  explicit ShortMessages(const cpu::ChaChaLanes& code) : code_(code) {}

  // With block 0.
  static std::size_t blocks_of(const Message& m) { return 1 + (m.in_len + chacha::block_len - 1) / chacha::block_len; }

  void add(const Message& m, Status& status) {
    if (blocks_ + blocks_of(m) > room) run();
    messages_[count_] = &m;
    statuses_[count_++] = &status;
    blocks_ += blocks_of(m);
  }

  void run() {
    make_first_states();
    chacha::State* state = states_->data();
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::uint32_t number = 0; number < blocks_of(*messages_[i]); ++number) {
        *state = (*first_)[i];
        state++->words[12] = number;
      }
    }
    code_.key_streams(states_->data(), blocks_, stream_->data());
    const std::uint8_t* stream = stream_->data();
    for (std::size_t i = 0; i < count_; ++i) {
      const Message& m = *messages_[i];
      Secret<std::uint8_t[poly1305::tag_len]> tag;
      (m.direction == Direction::encrypt ? code_.encrypt_short : code_.decrypt_short)(stream, text_of(m), *tag);
      *statuses_[i] = settle(m, *tag);
      stream += chacha::block_len * blocks_of(m);
    }
    count_ = blocks_ = 0;
  }

 private:
  static constexpr std::size_t room = 64;  // blocks

  // Of block 0 of each message. HChaCha20 is a block of ChaCha20 without the last addition.
  void make_first_states() {
    const bool derives = count_ != 0 && derives_key(*messages_[0]);
    for (std::size_t i = 0; i < count_; ++i) {
      const Message& m = *messages_[i];
      (*first_)[i] = derives ? chacha::make_state(m.key->bytes(), load_le32(m.iv), m.iv + 4)
                             : chacha::make_state(m.key->bytes(), 0, m.iv);
    }
    if (!derives) return;
    code_.key_streams(first_->data(), count_, stream_->data());
    for (std::size_t i = 0; i < count_; ++i) {
      chacha::State& first = (*first_)[i];
      std::uint8_t* const made = stream_->data() + chacha::block_len * i;
      for (std::size_t word = 0; word < 16; ++word) {
        store_le32(made + 4 * word, load_le32(made + 4 * word) - first.words[word]);
      }
      std::memmove(made + 16, made + 48, 16);
      first = chacha::make_state(made, 0, chacha::derive_nonce(messages_[i]->iv).data());
    }
  }

  const cpu::ChaChaLanes& code_;
  std::size_t count_ = 0, blocks_ = 0;
  std::array<const Message*, room> messages_{};
  std::array<Status*, room> statuses_{};
  Secret<std::array<chacha::State, room>> first_, states_;
  Secret<std::array<std::uint8_t, chacha::block_len * room>> stream_;
};

// h of a part as the mathematics of the joins takes it.
poly1305::Element load_hash(const std::uint8_t* hash) { return poly1305::load(hash, hash[16]); }

// r to a power, by squares: the power is a length's.
poly1305::Element power_of(poly1305::Element r, std::uint64_t exponent) {
  poly1305::Element power{{1, 0, 0, 0, 0}};
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = poly1305::multiply(power, r);
    r = poly1305::multiply(r, r);
  }
  return power;
}

}  // namespace

void run_chacha_piece_by_own(const cpu::ChaChaLanes& code, const Message& m, const Piece& piece) {
  const std::uint32_t number = load_le32(m.iv) + static_cast<std::uint32_t>(piece.first_unit);
  const Secret<chacha::State> first(chacha::make_state(m.key->bytes(), number, m.iv + 4));
  code.apply(*first, piece.in, piece.out, piece.len);
}

void run_chacha_piece_by_libcrypto(const Message& m, const Piece& piece) {
  const ContextPool::Lease context = ChaChaKey::of(*m.key).contexts(m.direction).borrow();
  std::uint8_t iv[chacha_iv_len];
  std::memcpy(iv, m.iv, sizeof iv);
  store_le32(iv, load_le32(m.iv) + static_cast<std::uint32_t>(piece.first_unit));
  context->start(iv);
  context->update(piece.in, piece.out, piece.len);
}

void run_chacha_piece(const Message& m, const Piece& piece) {
  if (code_rule(m.algorithm(), m.direction, piece.len).own) {
    run_chacha_piece_by_own(best_code(), m, piece);
  } else {
    run_chacha_piece_by_libcrypto(m, piece);
  }
}

Status run_chacha_by_own(const cpu::ChaChaLanes& code, const Message& m) {
  Secret<std::uint8_t[poly1305::tag_len]> tag;
  (m.direction == Direction::encrypt ? code.encrypt : code.decrypt)(*first_state(m), text_of(m), *tag);
  return settle(m, *tag);
}

Status run_chacha_by_libcrypto(const Message& m) {
  const ContextPool::Lease context = ChaChaKey::of(*m.key).contexts(m.direction).borrow();
  if (derives_key(m)) {
    const chacha::MessageKey derived = message_key(m);
    context->start(derived.key(), derived.nonce());
  } else {
    context->start(m.iv);
  }
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
  const bool own = m.compute_tag || code_rule(m.algorithm(), m.direction, m.in_len + m.aad_len).own;
  return own ? run_chacha_by_own(best_code(), m) : run_chacha_by_libcrypto(m);
}

void run_chacha_messages(const cpu::ChaChaLanes& code, std::span<const Message* const> messages,
                         std::span<Status* const> statuses) {
  ShortMessages together(code);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (ShortMessages::blocks_of(*messages[i]) <= code.blocks) {
      together.add(*messages[i], *statuses[i]);
    } else {
      *statuses[i] = run_chacha_message(*messages[i]);
    }
  }
  together.run();
}

SplitChaCha::SplitChaCha(const Message& m, std::uint64_t tiles, const cpu::ChaChaLanes& code)
    : code_(code),
      message_(m),
      tiles_(tiles),
      first_(first_state(m)),
      parts_(sizeof(cpu::ChaChaHash) * tiles),
      left_(tiles) {
  code_.key_streams(&*first_, 1, *key_);
}

bool SplitChaCha::run_tile(std::uint64_t tile, const Piece& piece, Status& status) {
  Secret<chacha::State> first(*first_);
  first->words[12] = 1 + static_cast<std::uint32_t>(piece.first_unit);
  const cpu::ChaChaText text{message_.aad, tile == 0 ? message_.aad_len : 0, piece.in, piece.out, piece.len};
  Secret<cpu::ChaChaHash> hash;
  (message_.direction == Direction::encrypt ? code_.encrypt_part : code_.decrypt_part)(*first, *key_, text, *hash);
  std::memcpy(parts_.data() + sizeof *hash * tile, *hash, sizeof *hash);
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  status = finish();
  return true;
}

// Horner's rule over the tiles: Poly1305 of the whole is the sum of the parts, each times r to the number of blocks
// after it. The block of lengths is the last.
Status SplitChaCha::finish() {
  constexpr std::size_t tile_len = cpu_tile_units * chacha::block_len;
  const std::size_t last_len = message_.in_len - (tiles_ - 1) * tile_len;
  const Secret<poly1305::Element> r(poly1305::load_r(*key_));
  const Secret<poly1305::Element> tile_power(power_of(*r, tile_len / poly1305::block_len));
  const Secret<poly1305::Element> last_power(power_of(*r, (last_len + poly1305::block_len - 1) / poly1305::block_len));
  Secret<poly1305::Element> hash;
  for (std::uint64_t tile = 0; tile < tiles_; ++tile) {
    *hash = poly1305::add(poly1305::multiply(*hash, tile + 1 < tiles_ ? *tile_power : *last_power),
                          load_hash(parts_.data() + sizeof(cpu::ChaChaHash) * tile));
  }
  std::uint8_t lengths[poly1305::block_len];
  store_le64(lengths, message_.aad_len);
  store_le64(lengths + 8, message_.in_len);
  *hash = poly1305::multiply(poly1305::add(*hash, poly1305::load(lengths, 1)), *r);
  Secret<std::uint8_t[poly1305::tag_len]> tag;
  poly1305::store_tag(*hash, *key_ + 16, *tag);
  return settle(message_, *tag);
}

}  // namespace warpcipher
