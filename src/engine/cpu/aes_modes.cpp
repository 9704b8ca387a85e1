// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/rule.hpp"
#include "engine/cpu/staged_modes.hpp"

namespace warpcipher {
namespace {

using Block = std::array<std::uint8_t, 16>;

Block counter_at(const Message& m, const Piece& piece) {
  Block counter;
  std::memcpy(counter.data(), m.iv, 16);
  add_be128(counter.data(), piece.first_unit);
  return counter;
}

// A tweak times the power of alpha of the piece (IEEE 1619, section 5.2).
void jump(Block& tweak, const Piece& piece) {
  if (piece.first_unit == 0) return;
  gf128::store_tweak(tweak.data(), gf128::jump_tweak(gf128::load_tweak(tweak.data()), piece.first_unit));
}

// SP 800-38A, section 6.3, segments of a byte.
void run_own_cfb8_encrypt(const cpu::AesLanes& code, const cpu::AesLaneKey& round_keys, const Piece& piece) {
  std::uint8_t history[17];  // the register, and the byte of ciphertext that moves in
  Secret<Block> key_stream;
  std::memcpy(history, piece.chain, 16);
  for (std::size_t i = 0; i < piece.len; ++i) {
    code.ecb_encrypt(round_keys, nullptr, history, key_stream->data(), 16, false);
    piece.out[i] = history[16] = static_cast<std::uint8_t>(piece.in[i] ^ key_stream->front());
    std::memmove(history, history + 1, 16);
  }
}

// libcrypto encrypts the IV under the tweak key to get the first tweak. A piece in the middle is given the IV that
// encrypts to its own.
void run_libcrypto_xts(AesKey& key, const Message& m, const Piece& piece) {
  Secret<Block> iv;
  std::memcpy(iv->data(), m.iv, 16);
  if (piece.first_unit != 0) {
    key.blocks(Direction::encrypt).borrow()->update(iv->data(), iv->data(), 16);
    jump(*iv, piece);
    key.blocks(Direction::decrypt).borrow()->update(iv->data(), iv->data(), 16);
  }
  const ContextPool::Lease context = key.mode(m.direction).borrow();
  context->start(iv->data());
  context->update(piece.in, piece.out, piece.len);
}

void run_own(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece, bool past_cache) {
  const cpu::AesLaneKey& round_keys = key.aes_lanes(code);
  const bool encrypting = m.direction == Direction::encrypt;
  switch (m.algorithm().mode.id) {
    case Mode::ctr:
      return code.ctr(round_keys, counter_at(m, piece).data(), piece.in, piece.out, piece.len, past_cache);
    case Mode::cbc:
      return code.cbc_decrypt(round_keys, piece.chain, piece.in, piece.out, piece.len, past_cache);
    case Mode::cfb:
      return code.cfb_decrypt(round_keys, piece.chain, piece.in, piece.out, piece.len, past_cache);
    case Mode::cfb8:
      if (encrypting) return run_own_cfb8_encrypt(code, round_keys, piece);
      return staged_cfb8_decrypt<16>(piece, [&](std::uint8_t* text, std::size_t blocks) {
        code.ecb_encrypt(round_keys, nullptr, text, text, 16 * blocks, false);
      });
    case Mode::xts: {
      Secret<Block> tweak;
      code.make_tweak(round_keys, m.iv, tweak->data());
      jump(*tweak, piece);
      return (encrypting ? code.xts_encrypt : code.xts_decrypt)(round_keys, tweak->data(), piece.in, piece.out,
                                                                piece.len, past_cache);
    }
    default:  // ECB
      return update_with_padding(m, piece, [&](const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
        (encrypting ? code.ecb_encrypt : code.ecb_decrypt)(round_keys, nullptr, in, out, len, past_cache);
      });
  }
}

}  // namespace

void run_own_piece(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece) {
  is_past_cache(m) ? run_past_cache(code, key, m, piece) : run_in_cache(code, key, m, piece);
}

void run_past_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece) {
  const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(piece.out)) % 64;
  // CFB8 has units of a byte, and goes through a buffer.
  if (to_line + 16 > piece.len || m.algorithm().unit_len() != 16) return run_in_cache(code, key, m, piece);
  if (to_line == 0) return run_own(code, key, m, piece, true);
  run_in_cache(code, key, m, {piece.in, piece.out, to_line, piece.first_unit, piece.chain, false});
  const Piece rest{piece.in + to_line,      piece.out + to_line, piece.len - to_line, piece.first_unit + to_line / 16,
                   piece.in + to_line - 16, piece.last};
  run_own(code, key, m, rest, true);
}

void run_in_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece) {
  run_own(code, key, m, piece, false);
}

void run_libcrypto_piece(AesKey& key, const Message& m, const Piece& piece) {
  const Mode mode = m.algorithm().mode.id;
  if (mode == Mode::xts) return run_libcrypto_xts(key, m, piece);
  if (m.direction == Direction::decrypt && (mode == Mode::cfb || mode == Mode::cfb8)) {
    const ContextPool::Lease blocks = key.blocks(Direction::encrypt).borrow();
    const auto ecb = [&](std::uint8_t* text, std::size_t count) { blocks->update(text, text, 16 * count); };
    return mode == Mode::cfb ? staged_cfb_decrypt<16>(piece, ecb) : staged_cfb8_decrypt<16>(piece, ecb);
  }
  const ContextPool::Lease context = key.mode(m.direction).borrow();
  if (mode != Mode::ecb) context->start(mode == Mode::ctr ? counter_at(m, piece).data() : piece.chain);
  update_with_padding(
      m, piece, [&](const std::uint8_t* in, std::uint8_t* out, std::size_t len) { context->update(in, out, len); });
}

void run_aes_piece(AesKey& key, const Message& m, const Piece& piece) {
  if (!code_rule(m.algorithm(), m.direction, piece.len).own) return run_libcrypto_piece(key, m, piece);
  run_own_piece(*cpu::aes_lanes_list().front(), key, m, piece);
}

}  // namespace warpcipher
