// SPDX-License-Identifier: Apache-2.0
// Lays keys out for the instruction set, and pads unfilled lanes.
#include "engine/cpu/des.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "cipher/des.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/staged_modes.hpp"

namespace warpcipher::cpu {

namespace bitslice = des::bitslice;
using des::block_len;

namespace {

constexpr std::size_t widest_lanes = 512;

// Staging for a group that the caller's blocks do not fill.
struct Group {
  alignas(64) std::uint8_t bytes[widest_lanes * block_len];
};

void check_key_len(std::size_t key_len) {
  if (key_len != 8 && key_len != 16 && key_len != 24) {
    refuse("a DES key has 8 bytes, a triple DES key 16 or 24; ", key_len, " were given");
  }
}

}  // namespace

DesSchedule::DesSchedule(const std::uint8_t* key, std::size_t key_len, bool decrypt, const DesLanes& code)
    : code_(&code) {
  check_key_len(key_len);
  passes_ = bitslice::pass_count(key_len);
  bitslice::expand_key(masks_->words, key, key_len, decrypt);
}

void DesSchedule::transform_ecb(const std::uint8_t* in, std::uint8_t* out, std::size_t blocks) const {
  const std::size_t groups = blocks / code_->lanes;
  const std::size_t whole = groups * code_->lanes * block_len;
  const std::size_t rest = blocks * block_len - whole;
  code_->transform(masks_->words, passes_, in, out, groups);
  if (rest == 0) return;
  Secret<Group> group;
  std::memcpy(group->bytes, in + whole, rest);
  code_->transform(masks_->words, passes_, group->bytes, group->bytes, 1);
  std::memcpy(out + whole, group->bytes, rest);
}

void DesKeyedLanes::Free::operator()(std::uint8_t* planes) const noexcept {
  secure_wipe(planes, size);
  ::operator delete[](planes, std::align_val_t{alignof(Group)});
}

DesKeyedLanes::DesKeyedLanes(const std::uint8_t* const* keys, std::size_t count, std::size_t key_len, bool decrypt,
                             const DesLanes& code)
    : code_(&code), count_(count) {
  check_key_len(key_len);
  passes_ = bitslice::pass_count(key_len);
  indices_ = bitslice::subkey_planes.data() + (decrypt ? bitslice::schedule_bits : 0);
  const std::size_t groups = (count + code.lanes - 1) / code.lanes;
  const std::size_t pass_size = code.lanes * block_len;
  const std::size_t size = groups * static_cast<std::size_t>(passes_) * pass_size;
  planes_ = {static_cast<std::uint8_t*>(::operator new[](size, std::align_val_t{alignof(Group)})), Free{size}};
  std::uint8_t* planes = planes_.get();
  Secret<Group> part;  // lanes past the last key keep their old content: nothing reads their blocks
  for (std::size_t first = 0; first < count; first += code.lanes) {
    for (int i = 0; i < passes_; ++i, planes += pass_size) {
      const std::size_t offset = bitslice::pass_of(key_len, decrypt, i).key_offset;
      for (std::size_t lane = 0; lane < std::min(code.lanes, count - first); ++lane) {
        std::memcpy(part->bytes + block_len * lane, keys[first + lane] + offset, block_len);
      }
      code.expand_keys(part->bytes, planes);
    }
  }
}

void DesKeyedLanes::transform(const std::uint8_t* in, std::uint8_t* out, std::size_t blocks) const {
  if (blocks > count_) {
    refuse(blocks, " blocks were given for ", count_, " keys");
  }
  const std::size_t group_len = code_->lanes * block_len;
  const std::uint8_t* planes = planes_.get();
  for (std::size_t first = 0; first < blocks; first += code_->lanes) {
    const std::size_t len = std::min(code_->lanes, blocks - first) * block_len;
    const std::size_t offset = first * block_len;
    if (len == group_len) {
      code_->transform_keyed(planes, indices_, passes_, in + offset, out + offset);
    } else {
      Secret<Group> group;
      std::memcpy(group->bytes, in + offset, len);
      code_->transform_keyed(planes, indices_, passes_, group->bytes, group->bytes);
      std::memcpy(out + offset, group->bytes, len);
    }
    planes += group_len * static_cast<std::size_t>(passes_);
  }
}

}  // namespace warpcipher::cpu

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
    } else if (mode != Mode::cfb && mode != Mode::ofb) {
      throw_no_code(m_);
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
  if (mode != Mode::ecb) throw_no_code(m);
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
