// SPDX-License-Identifier: Apache-2.0
// The source that des_lanes_*.cpp compile, each for its own instruction set: bitsliced DES on a Word, a vector of
// 64-bit elements. All of it is in an unnamed namespace or inlined by force: a function that the linker could merge
// with another file's copy might run instructions that the processor lacks.
#pragma once

#include <cstring>

#include "cipher/des_bitslice.hpp"
#include "engine/cpu/des_lanes.hpp"

namespace warpcipher::cpu {
namespace {

template <class Word>
struct DesLanesCode {
  static void transform(const std::uint64_t* masks, int passes, const std::uint8_t* in, std::uint8_t* out,
                        std::size_t groups) {
    Word rows[64];
    for (std::size_t group = 0; group < groups; ++group) {
      std::memcpy(rows, in + sizeof rows * group, sizeof rows);
      des::bitslice::transpose(rows);
      des::bitslice::transform(rows, des::bitslice::MaskSchedule<std::uint64_t>{masks}, passes);
      des::bitslice::transpose(rows);
      std::memcpy(out + sizeof rows * group, rows, sizeof rows);
    }
    wipe(rows);
  }

  static void transform_keyed(const std::uint8_t* planes, const std::uint8_t* indices, int passes,
                              const std::uint8_t* in, std::uint8_t* out) {
    Word rows[64];
    std::memcpy(rows, in, sizeof rows);
    des::bitslice::transpose(rows);
    des::bitslice::transform(rows, des::bitslice::PlaneSchedule<Word>{reinterpret_cast<const Word*>(planes), indices},
                             passes);
    des::bitslice::transpose(rows);
    std::memcpy(out, rows, sizeof rows);
    wipe(rows);
  }

  static void expand_keys(const std::uint8_t* keys, std::uint8_t* planes) {
    Word rows[64];
    std::memcpy(rows, keys, sizeof rows);
    des::bitslice::transpose(rows);
    std::memcpy(planes, rows, sizeof rows);
    wipe(rows);
  }

 private:
  static void wipe(Word (&rows)[64]) {
    std::memset(rows, 0, sizeof rows);
    __asm__ __volatile__("" : : "r"(rows) : "memory");
  }
};

template <class Word>
constexpr DesLanes make_des_lanes(const char* name) {
  using Code = DesLanesCode<Word>;
  return {name, 8 * sizeof(Word), Code::transform, Code::transform_keyed, Code::expand_keys};
}

}  // namespace
}  // namespace warpcipher::cpu
