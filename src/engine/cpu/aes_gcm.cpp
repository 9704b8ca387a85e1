// SPDX-License-Identifier: Apache-2.0
#include "core/bytes.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/piece.hpp"
#include "engine/cpu/rule.hpp"
#include "message/message.hpp"
#include "mode/gcm.hpp"

namespace warpcipher {
namespace {

// GHASH of the bytes that `feed` gives a context as additional data, and of a last block of lengths. GMAC of them under
// a known mask has the lengths of additional data in that block.
template <class Feed>
gf128::Element hash(AesKey& key, std::uint64_t len, gf128::Element lengths, Feed&& feed) {
  const GcmConstants& constants = key.gcm();
  const std::uint8_t zero_iv[12] = {};
  std::uint8_t tag[16];
  {
    const ContextPool::Lease context = key.mode(Direction::encrypt).borrow();
    context->start_gcm(zero_iv, sizeof zero_iv);
    feed(*context);
    context->finish_gcm(tag);
  }
  const gf128::Element own = gf128::add(gf128::load(tag), constants.hash_only_mask);
  secure_wipe(tag, sizeof tag);
  return gf128::add(own, gf128::gcm_multiply(gf128::add(length_block(len, 0), lengths), constants.hash_key));
}

// J0. libcrypto hashes a long IV faster.
gf128::Element first_counter(AesKey& key, const Message& m) {
  if (m.iv_len == gcm_plain_iv_len || !Libcrypto::is_here()) {
    return gcm_first_counter(m.iv, m.iv_len, [&] { return key.gcm().hash_key; });
  }
  return hash(key, m.iv_len, length_block(0, m.iv_len), [&](Context& context) { context.update_aad(m.iv, m.iv_len); });
}

}  // namespace

void hash_gcm_ciphertext(AesKey& key, const Message& m) {
  const std::uint8_t zeros[16] = {};
  const std::size_t padding = (16 - m.aad_len % 16) % 16;
  const gf128::Element hashed =
      hash(key, m.aad_len + padding + m.in_len, length_block(m.aad_len, m.in_len), [&](Context& context) {
        context.update_aad(m.aad, m.aad_len);
        context.update_aad(zeros, padding);
        context.update_aad(m.in, m.in_len);
      });
  const gf128::Element mask = key.encrypt_element(first_counter(key, m));
  gf128::store(m.tag, gf128::add(hashed, mask));
}

Status run_gcm_message(AesKey& key, Context& context, const Message& m) {
  const bool hash_apart = m.compute_tag && !gives_decryption_tags();
  if (hash_apart) hash_gcm_ciphertext(key, m);
  if (m.iv_len <= Context::max_gcm_iv_len) {
    context.start_gcm(m.iv, m.iv_len);
  } else {
    std::uint8_t iv[16];
    gf128::store(iv, gcm_solve_iv(first_counter(key, m), key.gcm().inverse));
    context.start_gcm(iv, sizeof iv);
  }
  context.update_aad(m.aad, m.aad_len);
  context.update(m.in, m.out, m.in_len);
  if (m.direction == Direction::encrypt) {
    context.finish_encrypt(m.tag, m.tag_len);
    return Status::ok;
  }
  if (m.compute_tag) {
    if (!hash_apart) context.finish_gcm(m.tag);
    return Status::ok;
  }
  if (context.finish_decrypt(m.tag, m.tag_len)) return Status::ok;
  secure_wipe(m.out, m.in_len);
  return Status::invalid_tag;
}

bool is_own_gcm(const Message& m) {
  return (m.iv_len == 12 || !Libcrypto::is_here()) && code_rule(m.algorithm(), m.direction, m.in_len).own;
}

OwnGcm::OwnGcm(AesKey& key) : code_(*cpu::gcm_lanes_list().front()), state_(key), key_(key.gcm_lanes(code_)) {}

Status OwnGcm::run(const Message& m) const {
  std::uint8_t counter0[16];
  gf128::store(counter0, first_counter(state_, m));
  const cpu::GcmText text{counter0, m.aad, m.aad_len, m.in, m.out, m.in_len, m.iv_len == 12, is_past_cache(m)};
  const bool encrypting = m.direction == Direction::encrypt;
  Secret<std::uint8_t[16]> tag;
  (encrypting ? code_.encrypt : code_.decrypt)(key_, text, *tag);
  return settle(m, *tag);
}

SplitGcm::SplitGcm(AesKey& key, const Message& m, std::uint64_t tiles)
    : SplitGcm(key, m, tiles,
               code_rule(m.algorithm(), m.direction, m.in_len).own ? cpu::gcm_lanes_list().front() : nullptr) {}

SplitGcm::SplitGcm(AesKey& key, const Message& m, std::uint64_t tiles, const cpu::GcmLanes* code)
    : key_(key),
      code_(code),
      constants_(key.gcm()),
      message_(m),
      tiles_(tiles),
      counter0_(first_counter(key, m)),
      parts_(static_cast<std::size_t>(16 * tiles)),
      left_(tiles) {}

bool SplitGcm::run_tile(std::uint64_t tile, const Piece& piece, Status& status) {
  gf128::store(parts_.data() + 16 * tile, transform_tile(piece));
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  status = finish();
  return true;
}

gf128::Element SplitGcm::transform_tile(const Piece& piece) {
  // The text of a GCM message begins one past its J0, the tile's text first_unit blocks further.
  const gf128::Element counter0 = gcm_advance(counter0_, piece.first_unit);
  const std::size_t aad_len = piece.first_unit == 0 ? message_.aad_len : 0;
  std::uint8_t tag[16];
  transform(counter0, piece, aad_len, tag);
  const gf128::Element mask = key_.encrypt_element(counter0);
  const gf128::Element hash = gf128::add(gf128::load(tag), mask);
  secure_wipe(tag, sizeof tag);
  return gf128::add(hash, gf128::gcm_multiply(length_block(aad_len, piece.len), constants_.hash_key));
}

void SplitGcm::transform(gf128::Element counter0, const Piece& piece, std::size_t aad_len, std::uint8_t (&tag)[16]) {
  std::uint8_t start[16];
  if (code_ != nullptr) {
    gf128::store(start, counter0);
    const cpu::GcmText text{
        start, message_.aad, aad_len, piece.in, piece.out, piece.len, message_.iv_len == 12, is_past_cache(message_)};
    (message_.direction == Direction::encrypt ? code_->encrypt : code_->decrypt)(key_.gcm_lanes(*code_), text, tag);
    return;
  }
  gf128::store(start, gcm_solve_iv(counter0, constants_.inverse));
  const ContextPool::Lease context = key_.mode(message_.direction).borrow();
  context->start_gcm(start, sizeof start);
  context->update_aad(message_.aad, aad_len);
  context->update(piece.in, piece.out, piece.len);
  context->finish_gcm(tag);
}

// Horner's rule over the tiles: GHASH of the whole is the sum of the parts, each times H to the number of blocks after
// it.
Status SplitGcm::finish() {
  const std::uint64_t last_blocks = message_.units() - (tiles_ - 1) * cpu_tile_units;
  gf128::Element hash{0, 0};
  for (std::uint64_t tile = 0; tile < tiles_; ++tile) {
    const gf128::Element shift =
        tile + 1 < tiles_ ? constants_.tile_power : gf128::gcm_power(constants_.hash_key, last_blocks);
    hash = gf128::add(gf128::gcm_multiply(hash, shift), gf128::load(parts_.data() + 16 * tile));
  }
  const gf128::Element lengths = length_block(message_.aad_len, message_.in_len);
  hash = gf128::add(hash, gf128::gcm_multiply(lengths, constants_.hash_key));
  hash = gf128::add(hash, key_.encrypt_element(counter0_));

  Secret<std::uint8_t[16]> tag;
  gf128::store(*tag, hash);
  return settle(message_, *tag);
}

namespace {

const std::uint8_t* block_key(const Key& key) {
  return key.algorithm().mode.two_keys ? key.bytes() + key.size() / 2 : key.bytes();
}

}  // namespace

gf128::Element length_block(std::uint64_t first_bytes, std::uint64_t second_bytes) {
  return {8 * first_bytes, 8 * second_bytes};
}

bool has_own_aes() {
  return !cpu::aes_lanes_list().empty() && !cpu::gcm_lanes_list().empty() && cpu::serial_code() != nullptr;
}

AesKey::AesKey(const Key& key)
    : symmetric_(key.algorithm().mode.id == Mode::ctr || key.algorithm().mode.id == Mode::ofb),
      encrypt_(key.algorithm().cipher.id, key.algorithm().mode.id, key.bytes(), Direction::encrypt),
      decrypt_(key.algorithm().cipher.id, key.algorithm().mode.id, key.bytes(), Direction::decrypt),
      encrypt_blocks_(key.algorithm().cipher.id, Mode::ecb, block_key(key), Direction::encrypt),
      decrypt_blocks_(key.algorithm().cipher.id, Mode::ecb, block_key(key), Direction::decrypt),
      key_(key) {}

const GcmConstants& AesKey::gcm() {
  gcm_once_.call([this] {
    gcm_->hash_key = encrypt_element({0, 0});
    gcm_->inverse = gcm_inverse(gcm_->hash_key);
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
    const std::size_t key_len = key_.algorithm().cipher.key_len;
    code.make_key(key_.bytes(), key_.algorithm().mode.two_keys ? key_.bytes() + key_len : nullptr, key_len, **made);
    aes_lanes_ = std::move(made);
  });
  return **aes_lanes_;
}

}  // namespace warpcipher
