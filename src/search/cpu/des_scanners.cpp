// SPDX-License-Identifier: Apache-2.0
// DES and triple DES, bitsliced. With one unknown DES key and a fully known pair, the search works from both ends
// (lanes.hpp). Otherwise (several unknown keys, or a partly known block) it computes the whole cipher by the code of
// the `cpu` engine.
#include <cstring>

#include "cipher/des_bitslice.hpp"
#include "core/bytes.hpp"
#include "engine/cpu/lanes.hpp"
#include "search/cpu/lane_scanner.hpp"
#include "search/cpu/lanes.hpp"
#include "search/strip_known_keys.hpp"

namespace warpcipher::search::cpu {

namespace {

namespace bitslice = des::bitslice;

constexpr std::size_t block_len = 8;
constexpr std::size_t best_loop_bits = 6;  // more gain less than a percent

class MeetCode {
 public:
  MeetCode(const DesMeetLanes& lanes, const BlockPair& pair)
      : lanes_(&lanes), plaintext_(load_le64(pair.in.data())), ciphertext_(load_le64(pair.expected.data())) {}

  void prepare(const LaneKeys& keys, const KeySpace& space) {
    plan_ = plan_des_meet(plaintext_, ciphertext_, space.free_bits().first(keys.loop_bits()));
  }

  std::uint64_t grain() const { return std::uint64_t{1} << 21; }
  std::size_t workspace_len() const { return lanes_->workspace_len; }

  std::size_t search(const std::uint8_t* keys, void* workspace, std::uint32_t* candidates) const {
    return lanes_->search(plan_, keys, workspace, candidates);
  }

 private:
  const DesMeetLanes* lanes_;
  std::uint64_t plaintext_;
  std::uint64_t ciphertext_;
  DesMeetPlan plan_{};
};

class WholeCode {
 public:
  WholeCode(const warpcipher::cpu::DesLanes& lanes, const BlockPair& pair)
      : lanes_(&lanes),
        decrypt_(pair.decrypt),
        in_(lanes.lanes * block_len),
        expected_(load_le64(pair.expected.data())),
        mask_(load_le64(pair.mask.data())) {
    for (std::size_t lane = 0; lane < lanes.lanes; ++lane) {
      std::memcpy(in_.data() + block_len * lane, pair.in.data(), block_len);
    }
  }

  void prepare(const LaneKeys& keys, const KeySpace& space) {
    key_len_ = space.key_len();
    passes_ = bitslice::pass_count(key_len_);
    const auto bits = space.free_bits().first(keys.loop_bits());
    loop_bits_.assign(bits.begin(), bits.end());
  }

  std::uint64_t grain() const { return std::uint64_t{1} << 19; }

  // The planes of each pass, then room for the blocks.
  std::size_t workspace_len() const { return (static_cast<std::size_t>(passes_) + 1) * pass_len(); }

  std::size_t search(const std::uint8_t* keys, void* workspace, std::uint32_t* candidates) const {
    auto* planes = static_cast<std::uint8_t*>(workspace);
    std::uint8_t* out = planes + static_cast<std::size_t>(passes_) * pass_len();
    for (int pass = 0; pass < passes_; ++pass) {
      const std::size_t offset = bitslice::pass_of(key_len_, decrypt_, pass).key_offset;
      for (std::size_t lane = 0; lane < lanes_->lanes; ++lane) {
        std::memcpy(out + block_len * lane, keys + key_len_ * lane + offset, block_len);
      }
      lanes_->expand_keys(out, planes + static_cast<std::size_t>(pass) * pass_len());
    }
    const std::uint8_t* indices = bitslice::subkey_planes.data() + (decrypt_ ? bitslice::schedule_bits : 0);
    std::size_t found = 0;
    for (std::size_t loop = 0; loop < std::size_t{1} << loop_bits_.size(); ++loop) {
      for (std::size_t i = 0; i < loop_bits_.size(); ++i) set_plane(planes, loop_bits_[i], (loop >> i & 1u) != 0);
      lanes_->transform_keyed(planes, indices, passes_, in_.data(), out);
      for (std::size_t lane = 0; lane < lanes_->lanes; ++lane) {
        if (((load_le64(out + block_len * lane) ^ expected_) & mask_) == 0) {
          candidates[found++] = static_cast<std::uint32_t>(lane << loop_bits_.size() | loop);
        }
      }
    }
    return found;
  }

 private:
  std::size_t pass_len() const { return lanes_->lanes * block_len; }

  // Sets the bit in each pass that uses it.
  void set_plane(std::uint8_t* planes, std::size_t bit, bool value) const {
    const std::size_t word_len = lanes_->lanes / 8;
    const auto plane = static_cast<std::size_t>(bitslice::plane_of_bit(static_cast<int>(bit % 64) + 1));
    for (int pass = 0; pass < passes_; ++pass) {
      if (bitslice::pass_of(key_len_, decrypt_, pass).key_offset != block_len * (bit / 64)) continue;
      std::memset(planes + static_cast<std::size_t>(pass) * pass_len() + word_len * plane, value ? 0xff : 0, word_len);
    }
  }

  const warpcipher::cpu::DesLanes* lanes_;
  bool decrypt_;
  SecretBytes in_;
  std::uint64_t expected_;
  std::uint64_t mask_;
  std::size_t key_len_ = 0;
  int passes_ = 0;
  std::vector<std::uint16_t> loop_bits_;
};

}  // namespace

std::vector<std::unique_ptr<Scanner>> des_meet_scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> found;
  if (is_aes(space->cipher())) return found;
  StrippedSearch single{space, test};
  if (space->cipher() != CipherId::des) {
    const auto stripped = strip_known_keys(*space, *test);
    if (!stripped) return found;
    single = *stripped;
  }
  if (single.test->first_bits() != 8 * static_cast<int>(block_len)) return found;
  for (const DesMeetLanes* lanes : des_meet_list()) {
    found.push_back(std::make_unique<LaneScanner<MeetCode>>(
        std::string("bitsliced from both ends, ") + lanes->name, single.space, space, test,
        MeetCode(*lanes, single.test->pairs().front()), lanes->lanes, best_loop_bits));
  }
  return found;
}

std::vector<std::unique_ptr<Scanner>> des_scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> found;
  if (is_aes(space->cipher())) return found;
  const auto stripped = strip_known_keys(*space, *test);
  const SpacePointer& searched = stripped ? stripped->space : space;
  const BlockPair& pair = (stripped ? *stripped->test : *test).pairs().front();
  for (const warpcipher::cpu::DesLanes* lanes : warpcipher::cpu::des_lanes_list()) {
    found.push_back(std::make_unique<LaneScanner<WholeCode>>(std::string("bitsliced, ") + lanes->name, searched, space,
                                                             test, WholeCode(*lanes, pair), lanes->lanes,
                                                             best_loop_bits));
  }
  return found;
}

}  // namespace warpcipher::search::cpu
