// SPDX-License-Identifier: Apache-2.0
// Finds the S-boxes of DES that depend on loop bits.
#include "search/cpu/lanes.hpp"

#include <algorithm>
#include <iterator>

#include "cipher/des_bitslice.hpp"
#include "core/error.hpp"
#include "core/processor.hpp"

namespace warpcipher::search::cpu {

DesMeetPlan plan_des_meet(std::uint64_t plaintext, std::uint64_t ciphertext, std::span<const std::uint16_t> loop_bits) {
  namespace bitslice = des::bitslice;
  if (loop_bits.size() > most_des_loop_bits) {
    refuse(loop_bits.size(), " loop bits were given, expected ", most_des_loop_bits, " at most");
  }
  DesMeetPlan plan{};
  plan.plaintext = plaintext;
  plan.ciphertext = ciphertext;
  plan.loop_bits = loop_bits.size();
  plan.subkey_planes = bitslice::subkey_planes.data();
  for (std::size_t i = 0; i < loop_bits.size(); ++i) {
    plan.loop_planes[i] = static_cast<std::uint8_t>(bitslice::plane_of_bit(loop_bits[i] + 1));
  }
  for (std::size_t memo = 0; memo < memo_count; ++memo) {
    std::uint16_t offset = 0;
    for (std::size_t box = 0; box < 8; ++box) {
      DesMeetPlan::Box& entry = plan.boxes[memo][box];
      const std::uint8_t* planes = bitslice::subkey_planes.data() + bitslice::subkey_bits * memo_rounds[memo] + 6 * box;
      for (std::size_t i = 0; i < loop_bits.size(); ++i) {
        if (std::find(planes, planes + 6, plan.loop_planes[i]) != planes + 6) {
          entry.bits[entry.count++] = static_cast<std::uint8_t>(i);
        }
      }
      entry.offset = offset;
      if (entry.count > 0) offset = static_cast<std::uint16_t>(offset + (1u << entry.count));
      for (std::size_t loop = 0; loop < std::size_t{1} << loop_bits.size(); ++loop) {
        unsigned set = 0;
        for (unsigned i = 0; i < entry.count; ++i) set |= static_cast<unsigned>(loop >> entry.bits[i] & 1u) << i;
        plan.sets[memo][loop][box] = static_cast<std::uint8_t>(set);
      }
    }
  }
  plan.memo_round2 = std::all_of(std::begin(plan.boxes[0]), std::end(plan.boxes[0]),
                                 [](const DesMeetPlan::Box& box) { return box.count == 0; });
  return plan;
}

std::span<const AesSearch* const> aes_search_list() { return runnable<&Lanes::aes>(); }
std::span<const DesMeetLanes* const> des_meet_list() { return runnable<&Lanes::des>(); }

}  // namespace warpcipher::search::cpu
