// SPDX-License-Identifier: Apache-2.0
#include "flow/piece_tags.hpp"

#include <cstring>

#include "cipher/chacha.hpp"
#include "cipher/chacha_message.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "mode/gcm_counter.hpp"

namespace warpcipher {

namespace {

using gf128::Element;

// a^-1 = a^(2^128 - 2): the product of a^(2^i) for i from 1 to 127.
Element inverse_of(Element a) {
  Element result = gf128::gcm_one;
  for (int i = 1; i < 128; ++i) {
    a = gf128::gcm_multiply(a, a);
    result = gf128::gcm_multiply(result, a);
  }
  return result;
}

}  // namespace

GcmPieces::GcmPieces(const Message& message) : aad_len_(message.aad_len) {
  State& state = *state_;
  state.schedule = aes::expand_key(message.key->bytes(), message.key->size());
  Secret<std::uint8_t[16]> block;
  std::memset(*block, 0, 16);
  aes::encrypt_block(state.schedule, *block, *block);
  state.hash_key = gf128::load(*block);
  if (state.hash_key == Element{}) {
    throw Error(Status::engine_failure,
                "the hash key of this AES-GCM key is zero, so a long message cannot be cut: use engine 'cpu'");
  }
  state.inverse = inverse_of(state.hash_key);
  gf128::store(state.first_counter, gcm_first_counter(message.iv, message.iv_len, [&] { return state.hash_key; }));
  state.sum = {};
}

void GcmPieces::iv_at(std::uint64_t block, std::uint8_t (&iv)[16]) const {
  // J0 of a 16-byte IV is (IV H + len) H, solved for IV.
  std::uint8_t counter[16];
  std::memcpy(counter, state_->first_counter, 16);
  add_be32(counter, static_cast<std::uint32_t>(block));
  const Element inner = gf128::gcm_multiply(gf128::load(counter), state_->inverse);
  gf128::store(iv, gf128::gcm_multiply(gf128::add(inner, {0, 128}), state_->inverse));
}

// E(J) for the counter J that stands before the piece's.
Element GcmPieces::mask(std::uint64_t block) const {
  Secret<std::uint8_t[16]> counter;
  std::memcpy(*counter, state_->first_counter, 16);
  add_be32(*counter, static_cast<std::uint32_t>(block));
  aes::encrypt_block(state_->schedule, *counter, *counter);
  return gf128::load(*counter);
}

void GcmPieces::add(std::uint64_t offset, std::size_t len, const std::uint8_t* tag) {
  State& state = *state_;
  const std::uint64_t block = offset / 16;
  const std::uint64_t aad_len = offset == 0 ? aad_len_ : 0;
  const Element hashed = gf128::add(gf128::load(tag), mask(block));
  const Element own = gf128::add(gf128::gcm_multiply(hashed, state.inverse), {8 * aad_len, 8 * std::uint64_t{len}});
  const Element before = gf128::gcm_multiply(state.sum, gf128::gcm_power(state.hash_key, hash_blocks_of(len)));
  state.sum = gf128::add(before, own);
  text_len_ += len;
}

void GcmPieces::tag(std::uint8_t (&tag)[full_tag_len]) const {
  const Element lengths{8 * aad_len_, 8 * text_len_};
  const Element hash = gf128::gcm_multiply(gf128::add(state_->sum, lengths), state_->hash_key);
  gf128::store(tag, gf128::add(hash, mask(0)));
}

namespace {

// Multiplies by r^exponent. The exponent is no secret, the power is one.
void multiply_by_power(poly1305::Element& h, const poly1305::Element& r, std::uint64_t exponent) {
  Secret<poly1305::Element> power(poly1305::Element{{1, 0, 0, 0, 0}});
  for (int bit = 63; bit >= 0; --bit) {
    *power = poly1305::multiply(*power, *power);
    if ((exponent >> bit & 1) != 0) *power = poly1305::multiply(*power, r);
  }
  h = poly1305::multiply(h, *power);
}

}  // namespace

Poly1305Pieces::Poly1305Pieces(const Message& message) : aad_len_(message.aad_len) {
  const chacha::MessageKey key(message.key->bytes(), message.iv, message.algorithm().iv_len);
  const Secret<chacha::State> block(chacha::key_stream(*key.state(0)));
  Secret<std::uint8_t[poly1305::key_len]> one_time_key;
  chacha::store_words(*one_time_key, block->words, 8);
  *hash_ = poly1305::Hash::start(*one_time_key);
}

void Poly1305Pieces::add(std::uint64_t offset, std::size_t len, const std::uint8_t* tag) {
  const std::uint64_t blocks = hash_blocks_of(len) + (offset == 0 ? hash_blocks_of(aad_len_) : 0);
  multiply_by_power(hash_->h, hash_->r, blocks);
  // The product carries what the sum of two may have too much.
  hash_->h = poly1305::multiply(poly1305::add(hash_->h, poly1305::load_sum(tag)), {{1, 0, 0, 0, 0}});
  text_len_ += len;
}

void Poly1305Pieces::tag(std::uint8_t (&tag)[full_tag_len]) const {
  std::uint8_t lengths[poly1305::block_len];
  store_le64(lengths, aad_len_);
  store_le64(lengths + 8, text_len_);
  Secret<poly1305::Hash> hash(*hash_);
  hash->add_block(lengths, sizeof lengths);
  hash->finish(tag);
}

}  // namespace warpcipher
