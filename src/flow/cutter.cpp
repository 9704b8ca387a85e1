// SPDX-License-Identifier: Apache-2.0
#include "flow/cutter.hpp"

#include <cstring>

#include "cipher/aes.hpp"
#include "cipher/chacha.hpp"
#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "mode/gcm.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t max_block_len = 16;

// Replaces `iv` by the data-unit number whose tweak is `iv`'s advanced by `blocks` blocks: D(E(iv) alpha^blocks)
// under the tweak's key (IEEE 1619, section 5.1). So an engine that can only begin a data unit continues one.
void advance_tweak(const Key& key, std::uint8_t* iv, std::uint64_t blocks) {
  const std::size_t half = key.size() / 2;
  const Secret<aes::Schedule> schedule(aes::expand_key(key.bytes() + half, half));
  const Secret<aes::Schedule> inverse(aes::to_decryption_schedule(*schedule));
  aes::encrypt_block(*schedule, iv, iv);
  gf128::store_tweak(iv, gf128::jump_tweak(gf128::load_tweak(iv), blocks));
  aes::decrypt_block(*inverse, iv, iv);
}

}  // namespace

bool can_be_cut(const Message& message) {
  const Algorithm& algorithm = message.algorithm();
  return algorithm.parallel(message.direction) && algorithm.mode.is_cut;
}

Cutter::Cutter(const Message& message, std::size_t index) {
  rest_.message = message;
  rest_.index = index;
  if (can_be_cut(message) && !message.algorithm().is_aead() && message.iv_len != 0) {
    std::memcpy(rest_.iv->data(), message.iv, message.iv_len);
    rest_.has_iv = true;
  }
}

Part Cutter::next(std::size_t len) {
  Message& rest = rest_.message;
  if (rest_.text_len() <= len || !can_be_cut(rest)) {
    done_ = true;
    return rest_;
  }
  std::size_t taken = len;
  // Ciphertext stealing needs a whole block before the short one (IEEE 1619, section 5.3.2).
  const bool steals = rest.algorithm().mode.steals && rest.in_len % max_block_len != 0;
  if (steals && rest.in_len - taken < max_block_len) taken -= max_block_len;
  if (rest.algorithm().is_aead() && rest_.tags == nullptr) begin_tags();
  Part part = rest_;
  part.last = false;
  part.message.in_len = taken;
  part.message.padding = Padding::none;
  part.message.out_len = taken;
  advance(taken);
  return part;
}

void Cutter::begin_tags() {
  Message& rest = rest_.message;
  if (rest.algorithm().mode.id == Mode::gcm) {
    rest_.tags = gcm_ = std::make_shared<GcmPieces>(rest);
    return;
  }
  rest_.tags = std::make_shared<Poly1305Pieces>(rest);
  rest.is_part = true;
}

void Cutter::advance(std::size_t len) {
  Message& rest = rest_.message;
  const std::size_t block = rest.algorithm().block_len();
  std::uint8_t* const iv = rest_.iv->data();
  rest_.offset += len;
  switch (rest.algorithm().mode.id) {
    case Mode::ctr: add_be128(iv, len / block); break;
    case Mode::cbc:
    case Mode::cfb:
    case Mode::cfb8: std::memcpy(iv, rest.in + len - block, block); break;
    case Mode::xts: advance_tweak(*rest.key, iv, len / block); break;
    case Mode::gcm: {
      std::uint8_t solved[16];
      gcm_->iv_at(rest_.offset / block, solved);
      std::memcpy(iv, solved, sizeof solved);
      secure_wipe(solved, sizeof solved);
      rest_.has_iv = true;
      rest.aad_len = 0;  // the first part has it
      break;
    }
    case Mode::stream: store_le32(iv, load_le32(iv) + static_cast<std::uint32_t>(len / block)); break;
    case Mode::poly1305:
      rest.first_block += static_cast<std::uint32_t>(len / block);
      rest.aad_len = 0;
      break;
    case Mode::ecb: break;
    default:
      if (len == rest.in_len) break;
      throw Error(Status::engine_failure, "a message of ", rest.algorithm().name, " is never cut");
  }
  rest.in += len;
  rest.out += len;
  rest.in_len -= len;
  rest.out_len -= len;
}

namespace {
using gf128::Element;
}

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
  state.inverse = gcm_inverse(state.hash_key);
  state.first_counter = gcm_first_counter(message.iv, message.iv_len, [&] { return state.hash_key; });
  state.sum = {};
}

void GcmPieces::iv_at(std::uint64_t block, std::uint8_t (&iv)[16]) const {
  gf128::store(iv, gcm_solve_iv(gcm_advance(state_->first_counter, block), state_->inverse));
}

// E(J) for the counter J that stands before the piece's.
Element GcmPieces::mask(std::uint64_t block) const {
  Secret<std::uint8_t[16]> counter;
  gf128::store(*counter, gcm_advance(state_->first_counter, block));
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

// Multiplies by r^exponent. The exponent is public, the power is secret.
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
