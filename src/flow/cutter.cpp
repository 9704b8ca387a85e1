// SPDX-License-Identifier: Apache-2.0
#include "flow/cutter.hpp"

#include <cstring>
#include <string>

#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "flow/piece_tags.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t max_block_len = 16;

// Replaces `iv` by the data-unit number whose tweak is that of `iv` advanced by `blocks` blocks: D(E(iv) alpha^blocks)
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
  const bool steals = rest.algorithm().mode.id == Mode::xts && rest.in_len % max_block_len != 0;
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
    case Mode::ctr:
      add_be128(iv, len / block);
      break;
    case Mode::cbc:
    case Mode::cfb:
    case Mode::cfb8:
      std::memcpy(iv, rest.in + len - block, block);
      break;
    case Mode::xts:
      advance_tweak(*rest.key, iv, len / block);
      break;
    case Mode::gcm: {
      std::uint8_t solved[16];
      gcm_->iv_at(rest_.offset / block, solved);
      std::memcpy(iv, solved, sizeof solved);
      secure_wipe(solved, sizeof solved);
      rest_.has_iv = true;
      rest.aad_len = 0;  // the first part has it
      break;
    }
    case Mode::stream:
      store_le32(iv, load_le32(iv) + static_cast<std::uint32_t>(len / block));
      break;
    case Mode::poly1305:
      rest.first_block += static_cast<std::uint32_t>(len / block);
      rest.aad_len = 0;
      break;
    case Mode::ecb:
      break;
    default:
      if (len == rest.in_len) break;
      throw Error(Status::engine_failure, "a message of " + std::string(rest.algorithm().name) + " is never cut");
  }
  rest.in += len;
  rest.out += len;
  rest.in_len -= len;
  rest.out_len -= len;
}

}  // namespace warpcipher
