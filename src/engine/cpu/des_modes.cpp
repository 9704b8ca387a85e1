// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/des.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/staged_modes.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t block_len = 8;

// One message in a lane of a serial mode, from one cipher call to the next.
class Lane {
 public:
  explicit Lane(const Message& m) : m_(m), units_(m.units()) {}

  std::uint64_t units() const { return units_; }

  // Makes the cipher's input of unit `unit` of the chaining value: SP 800-38A, section 6.2 for CBC; in the others they
  // are the same.
  void before(std::uint64_t unit, std::uint8_t* state) const {
    if (m_.algorithm().mode.id != Mode::cbc) return;
    const auto at = static_cast<std::size_t>(unit * block_len);
    if (at + block_len <= m_.in_len) {
      xor_bytes(state, state, m_.in + at, block_len);
    } else {
      const PaddedBlock padded(m_.in + at, m_.in_len - at, block_len);
      xor_bytes(state, state, padded.data(), block_len);
    }
  }

  // Takes the cipher's output in `state`, writes the unit, and leaves the next chaining value. `previous` is the
  // cipher's input.
  void after(std::uint64_t unit, std::uint8_t* state, const std::uint8_t* previous) const {
    const Mode mode = m_.algorithm().mode.id;
    const auto at = static_cast<std::size_t>(unit * m_.algorithm().unit_len());
    if (mode == Mode::cbc) {
      std::memcpy(m_.out + at, state, block_len);
    } else if (mode == Mode::cfb8) {
      m_.out[at] = static_cast<std::uint8_t>(m_.in[at] ^ state[0]);
      std::memcpy(state, previous + 1, block_len - 1);
      state[block_len - 1] = m_.out[at];
    } else {
      const std::size_t n = std::min(block_len, m_.in_len - at);
      xor_bytes(m_.out + at, m_.in + at, state, n);
      if (mode == Mode::cfb && n == block_len) std::memcpy(state, m_.out + at, block_len);
    }
  }

 private:
  const Message& m_;
  std::uint64_t units_;
};

// All lanes at once, one unit after the other.
void run_lanes(std::span<const Message* const> messages) {
  std::vector<const std::uint8_t*> keys;
  std::vector<Lane> lanes;
  SecretBytes states(block_len * messages.size()), inputs(block_len * messages.size());
  for (const Message* m : messages) {
    std::memcpy(states.data() + block_len * lanes.size(), m->iv, block_len);
    keys.push_back(m->key->bytes());
    lanes.emplace_back(*m);
  }
  const cpu::DesKeyedLanes cipher(keys.data(), keys.size(), messages.front()->key->size(), false);

  std::size_t active = lanes.size();  // those past it have ended; some before it may have
  for (std::uint64_t unit = 0;; ++unit) {
    while (active > 0 && lanes[active - 1].units() <= unit) --active;
    if (active == 0) return;
    for (std::size_t i = 0; i < active; ++i) {
      if (unit < lanes[i].units()) lanes[i].before(unit, states.data() + block_len * i);
    }
    std::memcpy(inputs.data(), states.data(), block_len * active);
    cipher.transform(inputs.data(), states.data(), active);
    for (std::size_t i = 0; i < active; ++i) {
      if (unit < lanes[i].units()) lanes[i].after(unit, states.data() + block_len * i, inputs.data() + block_len * i);
    }
  }
}

}  // namespace

std::size_t des_serial_lanes() { return cpu::des_lanes_list().front()->lanes; }

void run_des_piece(const Message& m, const Piece& piece) {
  const Mode mode = m.algorithm().mode.id;
  const bool decrypting_blocks = m.direction == Direction::decrypt && (mode == Mode::ecb || mode == Mode::cbc);
  const cpu::DesSchedule schedule(m.key->bytes(), m.key->size(), decrypting_blocks);
  const auto ecb = [&](std::uint8_t* text, std::size_t blocks) { schedule.transform_ecb(text, text, blocks); };
  if (mode == Mode::cbc) return staged_cbc_decrypt<block_len>(piece, ecb);
  if (mode == Mode::cfb) return staged_cfb_decrypt<block_len>(piece, ecb);
  if (mode == Mode::cfb8) return staged_cfb8_decrypt<block_len>(piece, ecb);
  update_with_padding(m, piece, [&](const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    schedule.transform_ecb(in, out, len / block_len);
  });
}

void run_des_serial(std::span<const Message* const> messages) {
  const std::size_t lanes = des_serial_lanes();
  for (std::size_t first = 0; first < messages.size(); first += lanes) {
    run_lanes(messages.subspan(first, std::min(lanes, messages.size() - first)));
  }
}

}  // namespace warpcipher
