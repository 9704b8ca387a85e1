// SPDX-License-Identifier: Apache-2.0
#include "flow/poly1305_pieces.hpp"

#include "cipher/chacha.hpp"
#include "cipher/chacha_message.hpp"
#include "core/bytes.hpp"

namespace warpcipher {
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
