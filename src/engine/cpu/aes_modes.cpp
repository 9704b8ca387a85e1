// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/lanes.hpp"
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
    case Mode::cbc: return code.cbc_decrypt(round_keys, piece.chain, piece.in, piece.out, piece.len, past_cache);
    case Mode::cfb: return code.cfb_decrypt(round_keys, piece.chain, piece.in, piece.out, piece.len, past_cache);
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
    case Mode::ecb:
      return update_with_padding(m, piece, [&](const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
        (encrypting ? code.ecb_encrypt : code.ecb_decrypt)(round_keys, nullptr, in, out, len, past_cache);
      });
    default: throw_no_code(m);
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
  switch (mode) {
    case Mode::ecb: break;
    case Mode::ctr: context->start(counter_at(m, piece).data()); break;
    case Mode::cbc:
    case Mode::cfb:
    case Mode::cfb8:
    case Mode::ofb: context->start(piece.chain); break;
    default: throw_no_code(m);
  }
  update_with_padding(
      m, piece, [&](const std::uint8_t* in, std::uint8_t* out, std::size_t len) { context->update(in, out, len); });
}

void run_aes_piece(AesKey& key, const Message& m, const Piece& piece) {
  if (!code_rule(m.algorithm(), m.direction, piece.len).own) return run_libcrypto_piece(key, m, piece);
  run_own_piece(*cpu::aes_lanes_list().front(), key, m, piece);
}

namespace {

using cpu::SerialLanes;
using cpu::SerialMode;

std::optional<SerialMode> serial_mode(const Algorithm& algorithm, Direction direction) {
  if (!is_aes(algorithm.cipher.id)) return std::nullopt;
  const bool encrypting = direction == Direction::encrypt;
  if (algorithm.mode.id == Mode::cbc && encrypting) return SerialMode::cbc;
  if (algorithm.mode.id == Mode::cfb && encrypting) return SerialMode::cfb;
  if (algorithm.mode.id == Mode::ofb) return SerialMode::ofb;
  return std::nullopt;
}

class SerialRun {
 public:
  SerialRun(SerialMode mode, std::span<const Message* const> messages)
      : code_(*cpu::serial_code()),
        mode_(mode),
        rounds_(static_cast<int>(messages[0]->algorithm().cipher.key_len / 4 + 6)),
        waiting_(messages) {}

  void run() {
    for (fill(); count_ != 0; fill()) {
      if (count_ == 1 && run_alone()) continue;
      std::size_t blocks = SerialLanes::most_blocks;
      for (std::size_t l = 0; l < count_; ++l) blocks = std::min(blocks, blocks_left(lanes_[l]));
      for (std::size_t l = 0; l < count_; ++l) take_in(l, 16 * blocks);
      code_.run(mode_, rounds_, *state_, count_, blocks);
      for (std::size_t l = 0; l < count_; ++l) bring_out(l, 16 * blocks);
    }
  }

 private:
  // The rest of the last message, if it has whole blocks.
  bool run_alone() {
    Lane& lane = lanes_[0];
    const Message& m = *lane.message;
    const std::size_t blocks = (m.in_len - lane.done) / 16;
    if (blocks == 0) return false;
    state_->in[0] = m.in + lane.done;
    code_.run_alone(mode_, rounds_, *state_, m.out + lane.done, blocks);
    lane.done += 16 * blocks;
    return true;
  }

  struct Lane {
    const Message* message = nullptr;
    std::size_t done = 0;  // bytes
  };

  // The last one may be short, or only padding.
  static std::size_t blocks_left(const Lane& lane) { return (lane.message->output_len() - lane.done + 15) / 16; }

  // Gives each lane whose message is done the next message. Where none is left, the last lane moves into its place.
  void fill() {
    for (std::size_t l = 0; l < count_;) {
      if (blocks_left(lanes_[l]) != 0 || begins(l)) {
        ++l;
      } else if (--count_ != l) {
        move(count_, l);
      }
    }
    while (count_ < SerialLanes::most && begins(count_)) ++count_;
  }

  bool begins(std::size_t l) {
    while (next_ < waiting_.size()) {
      const Message& m = *waiting_[next_++];
      if (m.output_len() == 0) continue;
      if (m.key != last_key_) code_.expand_key(m.key->bytes(), m.key->size(), *round_keys_);
      last_key_ = m.key;
      for (std::size_t r = 0; r <= static_cast<std::size_t>(rounds_); ++r) {
        std::memcpy(state_->round_keys[r][l], (*round_keys_)[r], 16);
      }
      std::memcpy(state_->chain[l], m.iv, 16);
      lanes_[l] = {&m, 0};
      return true;
    }
    return false;
  }

  void move(std::size_t from, std::size_t to) {
    for (std::size_t r = 0; r <= static_cast<std::size_t>(rounds_); ++r) {
      std::memcpy(state_->round_keys[r][to], state_->round_keys[r][from], 16);
    }
    std::memcpy(state_->chain[to], state_->chain[from], 16);
    lanes_[to] = lanes_[from];
  }

  void take_in(std::size_t l, std::size_t len) {
    const Message& m = *lanes_[l].message;
    const std::size_t text_len = std::min(len, m.in_len - lanes_[l].done);
    state_->in[l] = m.in + lanes_[l].done;
    if (text_len == len) return;
    if (text_len != 0) std::memcpy(state_->out[l], state_->in[l], text_len);
    // RFC 5652, section 6.3. In a stream mode bring_out() does not copy these bytes.
    std::memset(state_->out[l] + text_len, static_cast<int>(16 - m.in_len % 16), len - text_len);
    state_->in[l] = state_->out[l];
  }

  // Results are copied some blocks at a time: texts and results that lie a multiple of 4 KiB apart share few lines of
  // the cache.
  void bring_out(std::size_t l, std::size_t len) {
    Lane& lane = lanes_[l];
    const std::size_t made_len = std::min(len, lane.message->output_len() - lane.done);
    std::memcpy(lane.message->out + lane.done, state_->out[l], made_len);
    lane.done += made_len;
  }

  using RoundKeys = std::uint8_t[15][16];

  const cpu::SerialCode& code_;
  const SerialMode mode_;
  const int rounds_;
  const std::span<const Message* const> waiting_;
  std::size_t next_ = 0;
  std::size_t count_ = 0;  // lanes in use
  const Key* last_key_ = nullptr;
  std::array<Lane, SerialLanes::most> lanes_;
  Secret<SerialLanes> state_;
  Secret<RoundKeys> round_keys_;
};

}  // namespace

std::size_t aes_serial_lanes(const Algorithm& algorithm, Direction direction) {
  return cpu::serial_code() != nullptr && serial_mode(algorithm, direction) ? SerialLanes::most : 1;
}

void run_aes_serial(std::span<const Message* const> messages) {
  SerialRun(*serial_mode(messages[0]->algorithm(), messages[0]->direction), messages).run();
}

}  // namespace warpcipher
