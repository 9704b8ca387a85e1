// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/aes_serial.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/wipe.hpp"
#include "engine/cpu/aes_serial_lanes.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {
namespace cpu {

const SerialCode* serial_code() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("aes") && __builtin_cpu_supports("ssse3")) return &serial_code_aesni;
#endif
  return nullptr;
}

}  // namespace cpu

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
      std::size_t blocks = lanes_[0].blocks;
      for (std::size_t l = 1; l < count_; ++l) blocks = std::min(blocks, lanes_[l].blocks);
      code_.run(mode_, rounds_, *state_, count_, blocks);
      for (std::size_t l = 0; l < count_; ++l) lanes_[l].blocks -= blocks;
    }
  }

 private:
  // What is left of a lane's message: whole blocks, then one that is made here, of the bytes behind them.
  struct Lane {
    const Message* message = nullptr;
    std::size_t blocks = 0;
    bool has_tail = false;  // still to come
    bool is_at_tail = false;
  };

  // Gives lanes that are done their tail or another message, and closes up those that there is none for.
  void fill() {
    for (std::size_t l = 0; l < count_;) {
      if (lanes_[l].blocks != 0 || goes_on(l) || begins(l)) {
        ++l;
      } else {
        --count_;
        if (l != count_) move(count_, l);
      }
    }
    while (count_ < SerialLanes::most && begins(count_)) ++count_;
  }

  // After the whole blocks comes the tail, and after that the end.
  bool goes_on(std::size_t l) {
    Lane& lane = lanes_[l];
    const Message& m = *lane.message;
    const std::size_t whole = m.in_len / 16 * 16;
    if (lane.is_at_tail) {
      std::memcpy(m.out + whole, tails_[l].data(), m.output_len() - whole);
      return false;
    }
    if (!lane.has_tail) return false;
    std::uint8_t* const tail = tails_[l].data();
    const std::size_t len = m.in_len - whole;
    const bool pads = m.padding == Padding::pkcs7;  // RFC 5652, section 6.3
    std::memset(tail, pads ? static_cast<int>(16 - len) : 0, 16);
    if (len != 0) std::memcpy(tail, m.in + whole, len);
    state_->in[l] = state_->out[l] = tail;
    lane = {&m, 1, false, true};
    return true;
  }

  bool begins(std::size_t l) {
    while (next_ < waiting_.size()) {
      const Message& m = *waiting_[next_++];
      if (m.output_len() == 0) continue;
      const Key* const key = m.key;
      if (key != last_key_) code_.expand_key(key->bytes(), key->size(), *round_keys_);
      last_key_ = key;
      for (std::size_t r = 0; r <= static_cast<std::size_t>(rounds_); ++r) {
        std::memcpy(state_->round_keys[r][l], (*round_keys_)[r], 16);
      }
      std::memcpy(state_->chain[l], m.iv, 16);
      state_->in[l] = m.in;
      state_->out[l] = m.out;
      const std::size_t blocks = m.in_len / 16;
      lanes_[l] = {&m, blocks, m.output_len() != 16 * blocks, false};
      if (blocks == 0) goes_on(l);
      return true;
    }
    return false;
  }

  void move(std::size_t from, std::size_t to) {
    for (std::size_t r = 0; r <= static_cast<std::size_t>(rounds_); ++r) {
      std::memcpy(state_->round_keys[r][to], state_->round_keys[r][from], 16);
    }
    std::memcpy(state_->chain[to], state_->chain[from], 16);
    const bool in_tail = lanes_[from].is_at_tail;
    if (in_tail) tails_[to] = tails_[from];
    state_->in[to] = in_tail ? tails_[to].data() : state_->in[from];
    state_->out[to] = in_tail ? tails_[to].data() : state_->out[from];
    lanes_[to] = lanes_[from];
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
  Secret<std::array<std::array<std::uint8_t, 16>, SerialLanes::most>> tail_bytes_;
  std::array<std::array<std::uint8_t, 16>, SerialLanes::most>& tails_ = *tail_bytes_;
};

}  // namespace

std::size_t aes_serial_lanes(const Algorithm& algorithm, Direction direction) {
  return cpu::serial_code() != nullptr && serial_mode(algorithm, direction) ? SerialLanes::most : 1;
}

void run_aes_serial(std::span<const Message* const> messages) {
  SerialRun(*serial_mode(messages[0]->algorithm(), messages[0]->direction), messages).run();
}

}  // namespace warpcipher
