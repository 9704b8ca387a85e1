// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES on a Word, a vector of 64-bit elements. All of it is in an unnamed namespace or inlined by force, for
// the reason that cipher/simd/128.hpp gives.
#pragma once

#include <cstring>

#include "cipher/des_bitslice.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher::cpu {
namespace {

template <class Word>
struct DesCode {
  static void transform(const std::uint64_t* masks, int passes, const std::uint8_t* in, std::uint8_t* out,
                        std::size_t groups) {
    Word words[64];
    for (std::size_t group = 0; group < groups; ++group) {
      std::memcpy(words, in + sizeof words * group, sizeof words);
      des::bitslice::transpose(words);
      des::bitslice::transform(words, des::bitslice::MaskSchedule<std::uint64_t>{masks}, passes);
      des::bitslice::transpose(words);
      std::memcpy(out + sizeof words * group, words, sizeof words);
    }
    wipe(words);
  }

  static void transform_keyed(const std::uint8_t* planes, const std::uint8_t* indices, int passes,
                              const std::uint8_t* in, std::uint8_t* out) {
    Word words[64];
    std::memcpy(words, in, sizeof words);
    des::bitslice::transpose(words);
    des::bitslice::transform(words, des::bitslice::PlaneSchedule<Word>{reinterpret_cast<const Word*>(planes), indices},
                             passes);
    des::bitslice::transpose(words);
    std::memcpy(out, words, sizeof words);
    wipe(words);
  }

  static void expand_keys(const std::uint8_t* keys, std::uint8_t* planes) {
    Word words[64];
    std::memcpy(words, keys, sizeof words);
    des::bitslice::transpose(words);
    std::memcpy(planes, words, sizeof words);
    wipe(words);
  }

 private:
  static void wipe(Word (&words)[64]) {
    std::memset(words, 0, sizeof words);
    __asm__ __volatile__("" : : "r"(words) : "memory");
  }
};

template <class Simd, class Code = DesCode<typename Simd::Longs>>
constexpr DesLanes des_lanes{Simd::name, 8 * sizeof(typename Simd::Longs), Code::transform, Code::transform_keyed,
                             Code::expand_keys};

}  // namespace
}  // namespace warpcipher::cpu
