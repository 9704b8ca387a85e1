// SPDX-License-Identifier: Apache-2.0
// DES key search from both ends, bitsliced on a Word, a vector of 64-bit elements. All of it is in an unnamed namespace
// or inlined by force, for the reason that cipher/simd/128.hpp gives.
#pragma once

#include <cstring>
#include <utility>

#include "cipher/des_bitslice.hpp"
#include "search/cpu/lanes.hpp"

namespace warpcipher::search::cpu {
namespace {

namespace bitslice = des::bitslice;

template <class Word>
struct DesMeetCode {
  static constexpr std::size_t elements = sizeof(Word) / 8;

  // Everything that depends on keys; wiped by the caller.
  struct Workspace {
    Word planes[64];
    Word base[memo_count][32];  // the results of S-boxes without loop bits, and the half that f is added to
    Word sets[memo_count][most_sets][4];
    Word left[32];
    Word right[32];
    Word difference[32];
    Word r14[32];
  };

  using Schedule = bitslice::PlaneSchedule<Word>;
  using Subkey = typename Schedule::Subkey;

  // The left and the right half of a known block after IP, each bit in all lanes.
  static void spread(Word (&left)[32], Word (&right)[32], std::uint64_t block) {
    Word planes[64];
    for (int m = 0; m < 64; ++m) planes[m] = Word{} - (block >> m & 1u);
    bitslice::split(left, right, planes);
  }

  static WARPCIPHER_INLINE Subkey subkey(const DesMeetPlan& plan, const Workspace& work, int round) {
    return Schedule{work.planes, plan.subkey_planes}.subkey(round);
  }

  // The results of one S-box for all values of its loop bits.
  template <int Box>
  static void fill_box(const DesMeetPlan& plan, Workspace& work, std::size_t memo, const Word (&input)[32]) {
    const DesMeetPlan::Box& box = plan.boxes[memo][Box - 1];
    for (unsigned set = 0; set < 1u << box.count; ++set) {
      for (unsigned i = 0; i < box.count; ++i) {
        work.planes[plan.loop_planes[box.bits[i]]] = Word{} - std::uint64_t{set >> i & 1u};
      }
      Word out[32] = {};
      bitslice::add_sbox<Box>(out, input, subkey(plan, work, memo_rounds[memo]));
      for (std::size_t bit = 0; bit < 4; ++bit) {
        const int target = bitslice::detail::destination(4 * (Box - 1) + bit);
        if (box.count == 0) {
          work.base[memo][target] ^= out[target];
        } else {
          work.sets[memo][box.offset + set][bit] = out[target];
        }
      }
    }
    for (unsigned i = 0; i < box.count; ++i) work.planes[plan.loop_planes[box.bits[i]]] = Word{};
  }

  static void fill(const DesMeetPlan& plan, Workspace& work, std::size_t memo, const Word (&base)[32],
                   const Word (&input)[32]) {
    std::memcpy(work.base[memo], base, sizeof base);
    [&]<int... Box>(std::integer_sequence<int, Box...>) {
      (fill_box<Box + 1>(plan, work, memo, input), ...);
    }(std::make_integer_sequence<int, 8>{});
  }

  // The result of a looked-up round for one value of the loop.
  static WARPCIPHER_INLINE void look_up(const DesMeetPlan& plan, const Workspace& work, std::size_t memo, std::size_t loop,
                            Word (&out)[32]) {
    std::memcpy(out, work.base[memo], sizeof out);
    for (std::size_t i = 0; i < 8; ++i) {
      const DesMeetPlan::Box& box = plan.boxes[memo][i];
      if (box.count == 0) continue;
      const Word(&set)[4] = work.sets[memo][box.offset + plan.sets[memo][loop][i]];
      for (std::size_t bit = 0; bit < 4; ++bit) out[destinations.of[4 * i + bit]] ^= set[bit];
    }
  }

  template <int Box>
  static WARPCIPHER_INLINE void compare(const DesMeetPlan& plan, Workspace& work, Word& alive) {
    bitslice::add_sbox<Box>(work.difference, work.left, subkey(plan, work, 12));
    bitslice::add_sbox<Box>(work.difference, work.r14, subkey(plan, work, 14));
    constexpr int first = 4 * (Box - 1);
    alive &= ~(work.difference[bitslice::detail::destination(first)] |
               work.difference[bitslice::detail::destination(first + 1)] |
               work.difference[bitslice::detail::destination(first + 2)] |
               work.difference[bitslice::detail::destination(first + 3)]);
  }

  static WARPCIPHER_INLINE bool any(const Word& word) {
    std::uint64_t bits = 0;
    for (std::size_t e = 0; e < elements; ++e) bits |= word[e];
    return bits != 0;
  }

  static std::size_t search(const DesMeetPlan& plan, const std::uint8_t* keys, void* memory,
                            std::uint32_t* candidates) {
    Workspace& work = *static_cast<Workspace*>(memory);
    std::memcpy(work.planes, keys, sizeof work.planes);
    bitslice::transpose(work.planes);
    Word left0[32], right0[32], r16[32], r15[32];
    spread(left0, right0, plan.plaintext);
    spread(r16, r15, plan.ciphertext);
    fill(plan, work, 0, left0, right0);
    if (plan.memo_round2) fill(plan, work, 1, right0, work.base[0]);
    fill(plan, work, 2, r16, r15);

    std::size_t found = 0;
    for (std::size_t loop = 0; loop < std::size_t{1} << plan.loop_bits; ++loop) {
      for (std::size_t i = 0; i < plan.loop_bits; ++i) {
        work.planes[plan.loop_planes[i]] = Word{} - std::uint64_t{loop >> i & 1u};
      }
      // left becomes R2, right R1.
      if (plan.memo_round2) {
        look_up(plan, work, 1, loop, work.left);
        std::memcpy(work.right, work.base[0], sizeof work.right);
      } else {
        look_up(plan, work, 0, loop, work.right);
        std::memcpy(work.left, right0, sizeof work.left);
        bitslice::add_round(work.left, work.right, subkey(plan, work, 1));
      }
      for (int round = 2; round < 12; round += 2) {
        bitslice::add_round(work.right, work.left, subkey(plan, work, round));
        bitslice::add_round(work.left, work.right, subkey(plan, work, round + 1));
      }
      // left is R12, right R11: R13 = R11 + f(R12, K13) = R15 + f(R14, K15).
      for (int i = 0; i < 32; ++i) work.difference[i] = work.right[i] ^ r15[i];
      look_up(plan, work, 2, loop, work.r14);
      Word alive = ~Word{};
      compare<1>(plan, work, alive);
      compare<2>(plan, work, alive);
      compare<3>(plan, work, alive);
      if (!any(alive)) continue;
      compare<4>(plan, work, alive);
      if (!any(alive)) continue;
      compare<5>(plan, work, alive);
      compare<6>(plan, work, alive);
      compare<7>(plan, work, alive);
      compare<8>(plan, work, alive);
      if (!any(alive)) continue;
      for (std::size_t lane = 0; lane < 64 * elements; ++lane) {  // lane j * elements + e is bit j of element e
        if ((alive[lane % elements] >> lane / elements & 1u) == 0) continue;
        candidates[found++] = static_cast<std::uint32_t>(lane << plan.loop_bits | loop);
      }
    }
    return found;
  }

 private:
  struct Destinations {
    std::uint8_t of[32];
  };
  static constexpr Destinations destinations = [] {
    Destinations all{};
    for (std::size_t i = 0; i < 32; ++i) all.of[i] = static_cast<std::uint8_t>(bitslice::detail::destination(i));
    return all;
  }();
};

template <class Simd, class Code = DesMeetCode<typename Simd::Longs>>
constexpr DesMeetLanes des_meet{Simd::name, 8 * sizeof(typename Simd::Longs), sizeof(typename Code::Workspace),
                                Code::search};

}  // namespace
}  // namespace warpcipher::search::cpu
