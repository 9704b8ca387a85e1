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

LaneKeys::Walk::Walk(const LaneKeys& lane_keys, const KeyNumber& base) : lane_keys_(lane_keys), base_(base) {
  if (lane_keys.by_bits_) return;
  cursor_.emplace(lane_keys.space_, base);  // all free bits are loop bits, which are zero in base
  combinations_left_ = (lane_keys.space_.size() - base) >> lane_keys.loop_bits_;
}

void LaneKeys::Walk::fill(std::uint8_t* keys) {
  const std::size_t key_len = lane_keys_.space_.key_len();
  if (lane_keys_.by_bits_) {
    const std::uint8_t* patterns = lane_keys_.patterns_.data();
    Secret<std::array<std::uint8_t, max_key_len>> key;
    lane_keys_.space_.key_at(base_, key->data());
    for (std::size_t lane = 0; lane < lane_keys_.lanes_; ++lane) {
      for (std::size_t i = 0; i < key_len; ++i) keys[key_len * lane + i] = (*key)[i] ^ patterns[key_len * lane + i];
    }
    return;
  }
  const KeyNumber one(1);
  for (std::size_t lane = 0; lane < lane_keys_.lanes_; ++lane) {
    std::memcpy(keys + key_len * lane, cursor_->key(), key_len);
    if (combinations_left_ <= one) continue;
    combinations_left_ -= one;
    cursor_->next_combination();
  }
}

void LaneKeys::Walk::next() { base_ += KeyNumber(lane_keys_.block_len()); }

}  // namespace warpcipher::search::cpu
