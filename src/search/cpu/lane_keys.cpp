// SPDX-License-Identifier: Apache-2.0
#include "search/cpu/lane_keys.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace warpcipher::search::cpu {

LaneKeys::LaneKeys(const KeySpace& space, std::size_t lanes, std::size_t most_loop_bits)
    : space_(space), lanes_(lanes) {
  const std::size_t lane_bits = static_cast<std::size_t>(std::countr_zero(lanes));
  const std::span<const std::uint16_t> free_bits = space.free_bits();
  by_bits_ = free_bits.size() >= lane_bits;
  loop_bits_ = by_bits_ ? std::min(most_loop_bits, free_bits.size() - lane_bits) : free_bits.size();
  if (!by_bits_) return;
  const std::size_t key_len = space.key_len();
  patterns_ = SecretBytes(lanes * key_len);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::size_t i = 0; i < lane_bits; ++i) {
      if ((lane >> i & 1u) == 0) continue;
      const std::size_t bit = free_bits[loop_bits_ + i];
      patterns_.data()[key_len * lane + bit / 8] |= static_cast<std::uint8_t>(0x80u >> bit % 8);
    }
  }
}

KeyNumber LaneKeys::base_of(const KeyNumber& number) const {
  const std::size_t low_bits = by_bits_ ? loop_bits_ + static_cast<std::size_t>(std::countr_zero(lanes_)) : loop_bits_;
  return (number >> low_bits) << low_bits;
}

void LaneKeys::fill(const KeyNumber& base, std::uint8_t* keys) const {
  const std::size_t key_len = space_.key_len();
  if (by_bits_) {
    Secret<std::array<std::uint8_t, max_key_len>> key;
    space_.key_at(base, key->data());
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      for (std::size_t i = 0; i < key_len; ++i) {
        keys[key_len * lane + i] = (*key)[i] ^ patterns_.data()[key_len * lane + i];
      }
    }
    return;
  }
  // All free bits are in the loop, so the lanes are combinations from base's on.
  KeyCursor cursor(space_, base);
  const KeyNumber rest = (space_.size() - base) >> loop_bits_;
  const std::size_t filled = rest.fits64() && rest.low64() < lanes_ ? rest.low64() : lanes_;
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    std::memcpy(keys + key_len * lane, cursor.key(), key_len);
    if (lane + 1 < filled) cursor.next_combination();
  }
}

}  // namespace warpcipher::search::cpu
