// SPDX-License-Identifier: Apache-2.0
// Keys of a point function: its point and its value are secrets, so both sides of the path are computed alike.
#include <cstring>

#include "core/wipe.hpp"
#include "prg/host.hpp"

namespace warpcipher::prg::host {
namespace {

// Working memory of generate_one(); wiped.
struct Work {
  std::uint8_t nodes[2][block_len];                  // of the point's path, one a party
  std::uint8_t children[2][2][block_len];            // of a party: left, right
  std::uint8_t values[2 * most_blocks * block_len];  // of both nodes, one after the other
  std::uint8_t placed[most_blocks * block_len];
};

// The blocks of a value at place i: all other places are zero. All of them are looked at.
void place_value(Group group, std::uint64_t value, std::uint64_t i, std::uint8_t (&blocks)[most_blocks * block_len]) {
  for (std::uint64_t at = 0; at < 2 * most_blocks; ++at) {
    std::uint64_t word = 0;
    for (std::uint64_t bit = 0; bit < 64; bit += group == Group::gf2 ? 1 : group == Group::u32 ? 32 : 64) {
      const std::uint64_t place = group == Group::gf2 ? 64 * at + bit : group == Group::u32 ? 2 * at + bit / 32 : at;
      const std::uint64_t difference = place ^ i;
      const std::uint64_t is_other = 0 - ((difference | (0 - difference)) >> 63);
      word |= (value & ~is_other) << bit;
    }
    store_le64(blocks + 8 * at, word);
  }
}

}  // namespace

void generate_one(const Code& code, const Domain& domain, std::uint64_t point, std::uint64_t value,
                  const std::uint8_t* random, std::uint8_t* first, std::uint8_t* second) {
  const int depth = domain.depth(), in_block = domain.bits - depth;
  const RecordLayout layout(domain);
  Secret<Work> work;
  std::memset(first, 0, domain.record_len());
  for (std::size_t party = 0; party < 2; ++party) {
    std::memcpy(work->nodes[party], random + block_len * party, block_len);
    work->nodes[party][0] = static_cast<std::uint8_t>((work->nodes[party][0] & 0xfe) | party);
  }
  std::memcpy(first, work->nodes[0], block_len);
  const LevelCorrection none{};
  for (int level = 0; level < depth; ++level) {
    const std::uint64_t right = point >> (domain.bits - 1 - level) & 1;  // the path's side, a secret
    const auto to_right = static_cast<std::uint8_t>(0 - right);
    code.grow(domain.generator, work->nodes[0], 2, none, work->children[0][0]);
    std::uint8_t* const correction = first + RecordLayout::correction(level);
    const auto& children = work->children;
    // The other side's seeds become equal, and its control bits; the path's control bits become different.
    for (std::size_t b = 0; b < block_len; ++b) {
      const auto left_sum = static_cast<std::uint8_t>(children[0][0][b] ^ children[1][0][b]);
      const auto right_sum = static_cast<std::uint8_t>(children[0][1][b] ^ children[1][1][b]);
      correction[b] = static_cast<std::uint8_t>((left_sum & to_right) | (right_sum & ~to_right));
    }
    // Correlated: so they are, as the path's nodes always differ by the same, whose control bit is 1.
    std::uint64_t left_control = correction[0] & 1, right_control = left_control;
    if (!layout.correlated) {
      left_control = (children[0][0][0] ^ children[1][0][0] ^ right ^ 1) & 1;
      right_control = (children[0][1][0] ^ children[1][1][0] ^ right) & 1;
      correction[0] = static_cast<std::uint8_t>((correction[0] & 0xfe) | left_control);
      std::uint8_t* const bits = first + layout.right_bits() + level / 8;
      *bits = static_cast<std::uint8_t>(*bits | right_control << (level % 8));
    }
    for (std::size_t party = 0; party < 2; ++party) {
      const auto control = static_cast<std::uint8_t>(0 - (work->nodes[party][0] & 1));
      for (std::size_t b = 0; b < block_len; ++b) {
        std::uint8_t added = correction[b];
        if (b == 0) {
          const std::uint64_t own = (left_control & ~right) | (right_control & right);
          added = static_cast<std::uint8_t>((added & 0xfe) | (own & 1));
        }
        const auto child =
            static_cast<std::uint8_t>((children[party][0][b] & ~to_right) | (children[party][1][b] & to_right));
        work->nodes[party][b] = static_cast<std::uint8_t>(child ^ (added & control));
      }
    }
  }
  // Of the blocks b0 and b1: (-1)^t1 (value - b0 + b1), where t1 is party 1's control bit.
  const LeafCorrection nothing{{}, domain.group, false};
  code.finish(domain.generator, work->nodes[0], 2, nothing, work->values);
  std::uint8_t* const made = first + layout.value();
  const std::uint8_t *const placed = work->placed, *const own = work->values;
  const std::uint8_t* const other = own + block_len * domain.blocks();
  place_value(domain.group, value, point & ((std::uint64_t{1} << in_block) - 1), work->placed);
  const std::uint64_t negative = 0 - (std::uint64_t{work->nodes[1][0]} & 1);
  for (std::size_t at = 0; at < block_len * domain.blocks(); at += domain.group == Group::u32 ? 4 : 8) {
    if (domain.group == Group::u32) {
      std::uint32_t x = load_le32(placed + at) - load_le32(own + at) + load_le32(other + at);
      x = (x ^ static_cast<std::uint32_t>(negative)) - static_cast<std::uint32_t>(negative);
      store_le32(made + at, x);
    } else if (domain.group == Group::u64) {
      std::uint64_t x = load_le64(placed + at) - load_le64(own + at) + load_le64(other + at);
      x = (x ^ negative) - negative;
      store_le64(made + at, x);
    } else {
      store_le64(made + at, load_le64(placed + at) ^ load_le64(own + at) ^ load_le64(other + at));
    }
  }
  std::memcpy(second, first, domain.record_len());
  std::memcpy(second, random + block_len, block_len);
  second[0] = static_cast<std::uint8_t>(second[0] | 1);
}

}  // namespace warpcipher::prg::host
