// SPDX-License-Identifier: Apache-2.0
// The loop over long texts of GCM and of the decryption of GCM-SIV: a part of gcm_lanes_code.hpp. All of it is in an
// unnamed namespace, for the reason that aes_instructions.hpp gives.
//
// A lane is a block of each vector: with four blocks in a vector, block 0, 4, 8 ... of a text, or 1, 5, 9 ... A group
// multiplies all blocks of a vector by the same power of H, that of the first, and a sum for each lane is carried on:
//
//   (lane's sum + X_1) H^32 + X_5 H^28 + ... + X_29 H^4       in the lane of blocks 1, 5, 9 ...
//
// so that no group waits for the sum of its lanes. What is in lane i is then still to be divided by H^i. The last
// group, which is not one of this loop, does that: it multiplies each block, and the sum that is added to it, by the
// power that is the block's own.
#pragma once

#include <immintrin.h>

#include "engine/cpu/gcm_counters.hpp"
#include "engine/cpu/gcm_lanes.hpp"
#include "engine/cpu/ghash_sum.hpp"
#include "engine/cpu/lane_rounds.hpp"

namespace warpcipher::cpu {
namespace {

// Whole groups, two or more, of `Count` vectors. Gives the sums of the lanes, after `sums`, and counts on. Of the texts
// that it makes, all but the last group are hashed, and that is given at `waiting`; or the texts that it takes are.
template <class Lanes, bool Siv, bool HashesInput, std::size_t Count>
[[gnu::always_inline]] inline typename Lanes::Vector run_by_lane(const GcmLaneKey& key,
                                                                 GcmCounters<Lanes, Siv>& counters,
                                                                 typename Lanes::Vector sums, const std::uint8_t* in,
                                                                 std::uint8_t* out, std::size_t len,
                                                                 typename Lanes::Vector (&waiting)[Count]) {
  using Vector = typename Lanes::Vector;
  constexpr std::size_t vector_len = 16 * Lanes::blocks, group_len = Count * vector_len;
  GcmCounters<Lanes, Siv> next = counters;  // in a register
  for (std::size_t done = 0; done < len; done += group_len, in += group_len, out += group_len) {
    Vector blocks[Count];
    next.fill(blocks);
    // The text is added with the last round key, of which the rounds do not wait.
    const auto last_key = [&](std::size_t v, Vector last) {
      return Lanes::exclusive_or(last, HashesInput ? waiting[v] : Lanes::load(in + vector_len * v));
    };
    if (!HashesInput && done == 0) {
      transform_vectors<Lanes, true>(key.round_keys, key.rounds, blocks, [](std::size_t) {}, last_key);
    } else {
      GhashSum<Lanes> sum = GhashSum<Lanes>::of_nothing();
      const auto add_product = [&](std::size_t r) {
        if (r > Count) return;
        fetch_ahead<Lanes>(in + vector_len * (r - 1));
        const std::size_t v = r % Count;  // the first vector, which waits for the sums, comes last
        const std::size_t place = GcmLaneKey::most_powers - Lanes::blocks * (Count - v);
        if constexpr (HashesInput) waiting[v] = Lanes::load(in + vector_len * v);
        Vector x = waiting[v];
        if constexpr (!Siv) x = Lanes::swap_bytes(x);
        if (v == 0) x = Lanes::exclusive_or(x, sums);
        if constexpr (!adds_three<Lanes>) {
          sum.template add_product<true>(x, key, place);
        } else if (r % 2 != 0) {
          sum.template take_product<true>(x, key, place);
        } else {
          sum.template add_taken<true>(x, key, place);
        }
      };
      transform_vectors<Lanes, true>(key.round_keys, key.rounds, blocks, add_product, last_key);
      sums = sum.reduced_by_lane();
    }
    for (std::size_t v = 0; v < Count; ++v) {
      Lanes::store(out + vector_len * v, blocks[v]);
      if constexpr (!HashesInput) waiting[v] = blocks[v];
    }
  }
  counters = next;
  return sums;
}

}  // namespace
}  // namespace warpcipher::cpu
