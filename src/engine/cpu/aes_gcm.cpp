// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/aes_gcm.hpp"

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"

namespace warpcipher {
namespace {

// GHASH of data padded with zeros to whole blocks, with no length block: GMAC under a known mask. Pieces but the last
// are whole blocks.
class Hash {
 public:
  explicit Hash(AesKey& key) : constants_(key.gcm()), context_(key.mode(Direction::encrypt).borrow()) {
    const std::uint8_t iv[12] = {};
    context_->start_gcm(iv, sizeof iv);
  }

  void update(const std::uint8_t* data, std::size_t len) {
    context_->update_aad(data, len);
    len_ += len;
  }

  // Zeros up to the end of the block.
  void pad() {
    const std::uint8_t zeros[16] = {};
    update(zeros, (16 - len_ % 16) % 16);
  }

  gf128::Element finish() {
    std::uint8_t tag[16];
    context_->finish_gcm_encrypt(tag, sizeof tag);
    const gf128::Element hash = gf128::add(gf128::load(tag), constants_.hash_only_mask);
    secure_wipe(tag, sizeof tag);
    return gf128::add(hash, gf128::gcm_multiply(length_block(len_, 0), constants_.hash_key));
  }

 private:
  const GcmConstants& constants_;
  ContextPool::Lease context_;
  std::uint64_t len_ = 0;
};

// J0: SP 800-38D, section 7.1, step 2.
gf128::Element first_counter(AesKey& key, const Message& m) {
  if (m.iv_len == 12) return {load_be64(m.iv), std::uint64_t{load_be32(m.iv + 8)} << 32 | 1};
  Hash hash(key);
  hash.update(m.iv, m.iv_len);
  const gf128::Element lengths = gf128::gcm_multiply(length_block(0, m.iv_len), key.gcm().hash_key);
  return gf128::add(hash.finish(), lengths);
}

// Counter mode whose counter is the low 32 bits alone (section 6.5); libcrypto's is 128 bits wide.
void run_counter32(Context& context, gf128::Element counter, const std::uint8_t* in, std::uint8_t* out,
                   std::size_t len) {
  while (len > 0) {
    const std::uint64_t blocks_to_wrap = (std::uint64_t{1} << 32) - (counter.low & 0xffffffffu);
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(len, 16 * blocks_to_wrap));
    std::uint8_t block[16];
    gf128::store(block, counter);
    context.start(block);
    context.update(in, out, n);
    in += n;
    out += n;
    len -= n;
    counter = advance_counter(counter, n / 16);
  }
}

}  // namespace

Status run_gcm_message(AesKey& key, Context& context, const Message& m) {
  if (m.iv_len <= Context::max_gcm_iv_len) {
    context.start_gcm(m.iv, m.iv_len);
  } else {
    std::uint8_t iv[16];
    gf128::store(iv, solve_iv(key.gcm(), first_counter(key, m)));
    context.start_gcm(iv, sizeof iv);
  }
  context.update_aad(m.aad, m.aad_len);
  context.update(m.in, m.out, m.in_len);
  if (m.direction == Direction::encrypt) {
    context.finish_gcm_encrypt(m.tag, m.tag_len);
    return Status::ok;
  }
  if (context.finish_gcm_decrypt(m.tag, m.tag_len)) return Status::ok;
  secure_wipe(m.out, m.in_len);
  return Status::invalid_tag;
}

SplitGcm::SplitGcm(AesKey& key, const Message& m, std::uint64_t tiles)
    : key_(key),
      constants_(key.gcm()),
      message_(m),
      tiles_(tiles),
      counter0_(first_counter(key, m)),
      parts_(static_cast<std::size_t>(16 * tiles)),
      left_(tiles) {}

bool SplitGcm::run_tile(std::uint64_t tile, const Piece& piece, Status& status) {
  // The text of a GCM message begins one past its J0, and that of the tile first_unit blocks further.
  const gf128::Element counter0 = advance_counter(counter0_, piece.first_unit);
  const gf128::Element part =
      message_.direction == Direction::encrypt ? encrypt_tile(piece, counter0) : decrypt_tile(piece, counter0);
  gf128::store(parts_.data() + 16 * tile, part);
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  status = finish();
  return true;
}

gf128::Element SplitGcm::encrypt_tile(const Piece& piece, gf128::Element counter0) {
  const std::size_t aad_len = piece.first_unit == 0 ? message_.aad_len : 0;
  std::uint8_t iv[16], tag[16];
  gf128::store(iv, solve_iv(constants_, counter0));
  {
    const ContextPool::Lease context = key_.mode(Direction::encrypt).borrow();
    context->start_gcm(iv, sizeof iv);
    context->update_aad(message_.aad, aad_len);
    context->update(piece.in, piece.out, piece.len);
    context->finish_gcm_encrypt(tag, sizeof tag);
  }
  const gf128::Element mask = encrypt_element(*key_.blocks(Direction::encrypt).borrow(), counter0);
  const gf128::Element hash = gf128::add(gf128::load(tag), mask);
  secure_wipe(tag, sizeof tag);
  return gf128::add(hash, gf128::gcm_multiply(length_block(aad_len, piece.len), constants_.hash_key));
}

gf128::Element SplitGcm::decrypt_tile(const Piece& piece, gf128::Element counter0) {
  constexpr std::size_t cached = 16384;
  Hash hash(key_);
  if (piece.first_unit == 0) {
    hash.update(message_.aad, message_.aad_len);
    hash.pad();
  }
  const ContextPool::Lease counter_mode = key_.counter().borrow();
  const gf128::Element counter = advance_counter(counter0, 1);
  for (std::size_t at = 0; at < piece.len; at += cached) {
    const std::size_t n = std::min(cached, piece.len - at);
    hash.update(piece.in + at, n);
    run_counter32(*counter_mode, advance_counter(counter, at / 16), piece.in + at, piece.out + at, n);
  }
  return hash.finish();
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
  hash = gf128::add(hash, encrypt_element(*key_.blocks(Direction::encrypt).borrow(), counter0_));

  std::uint8_t tag[16];
  gf128::store(tag, hash);
  Status status = Status::ok;
  if (message_.direction == Direction::encrypt) {
    std::memcpy(message_.tag, tag, message_.tag_len);
  } else if (!equal_constant_time(tag, message_.tag, message_.tag_len)) {
    secure_wipe(message_.out, message_.in_len);
    status = Status::invalid_tag;
  }
  secure_wipe(tag, sizeof tag);
  return status;
}

}  // namespace warpcipher
