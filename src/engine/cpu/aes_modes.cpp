// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/aes_modes.hpp"

#include <array>
#include <cstring>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/staged_modes.hpp"

namespace warpcipher {
namespace {

void run_counter(AesKey& key, const Message& m, const Piece& piece) {
  std::uint8_t counter[16];
  std::memcpy(counter, m.iv, 16);
  add_be128(counter, piece.first_unit);
  const ContextPool::Lease context = key.mode(m.direction).borrow();
  context->start(counter);
  context->update(piece.in, piece.out, piece.len);
}

// libcrypto encrypts the IV under the tweak key to get the first tweak. A piece in the middle needs that tweak times a
// power of alpha (IEEE 1619, section 5.2), so it is given the IV that encrypts to it.
void run_xts(AesKey& key, const Message& m, const Piece& piece) {
  Secret<std::array<std::uint8_t, 16>> iv;
  std::memcpy(iv->data(), m.iv, 16);
  if (piece.first_unit != 0) {
    key.blocks(Direction::encrypt).borrow()->update(iv->data(), iv->data(), 16);
    gf128::store_tweak(iv->data(), gf128::jump_tweak(gf128::load_tweak(iv->data()), piece.first_unit));
    key.blocks(Direction::decrypt).borrow()->update(iv->data(), iv->data(), 16);
  }
  const ContextPool::Lease context = key.mode(m.direction).borrow();
  context->start(iv->data());
  context->update(piece.in, piece.out, piece.len);
}

}  // namespace

void run_aes_piece(AesKey& key, const Message& m, const Piece& piece) {
  const Mode mode = m.algorithm().mode.id;
  const bool decrypting = m.direction == Direction::decrypt;
  if (mode == Mode::ctr) return run_counter(key, m, piece);
  if (mode == Mode::xts) return run_xts(key, m, piece);
  if (decrypting && (mode == Mode::cfb || mode == Mode::cfb8)) {
    const ContextPool::Lease blocks = key.blocks(Direction::encrypt).borrow();
    const auto ecb = [&](std::uint8_t* text, std::size_t count) { blocks->update(text, text, 16 * count); };
    return mode == Mode::cfb ? staged_cfb_decrypt<16>(piece, ecb) : staged_cfb8_decrypt<16>(piece, ecb);
  }
  const ContextPool::Lease context = key.mode(m.direction).borrow();
  if (mode != Mode::ecb) context->start(piece.chain);
  update_with_padding(
      m, piece, [&](const std::uint8_t* in, std::uint8_t* out, std::size_t len) { context->update(in, out, len); });
}

}  // namespace warpcipher
