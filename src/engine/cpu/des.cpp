// SPDX-License-Identifier: Apache-2.0
// Lays keys out for the instruction set, and pads unfilled lanes.

#include "engine/cpu/des.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "cipher/des.hpp"
#include "core/error.hpp"

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
    throw Error(Status::invalid_argument,
                "a DES key has 8 bytes, a triple DES key 16 or 24; " + std::to_string(key_len) + " were given");
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
    throw Error(Status::invalid_argument,
                std::to_string(blocks) + " blocks were given for " + std::to_string(count_) + " keys");
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
