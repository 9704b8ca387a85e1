// SPDX-License-Identifier: Apache-2.0
// The bitsliced DES of one instruction set, as the functions that des.cpp chooses from. des_lanes_baseline.cpp,
// des_lanes_avx2.cpp and des_lanes_avx512.cpp define one each, from one source (des_lanes_code.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher::cpu {

struct DesLanes {
  const char* name;
  std::size_t lanes;  // blocks that run at once, a group; a multiple of 64

  // One key. masks: 768 a pass, of bitslice::expand_key. in, out: `groups` times `lanes` blocks of 8 bytes, any
  // alignment; the same buffer or disjoint.
  void (*transform)(const std::uint64_t* masks, int passes, const std::uint8_t* in, std::uint8_t* out,
                    std::size_t groups);

  // A key for each block of one group. planes: 64 `lanes` bits a pass, of expand_keys, aligned to lanes / 8 bytes;
  // indices: bitslice::subkey_planes from the pass to start with.
  void (*transform_keyed)(const std::uint8_t* planes, const std::uint8_t* indices, int passes, const std::uint8_t* in,
                          std::uint8_t* out);

  // The planes of one pass's keys. keys: `lanes` times 8 bytes; planes: as many bytes, aligned to lanes / 8 bytes.
  void (*expand_keys)(const std::uint8_t* keys, std::uint8_t* planes);
};

extern const DesLanes des_lanes_baseline;
#if defined(__x86_64__)
extern const DesLanes des_lanes_avx2;
extern const DesLanes des_lanes_avx512;
#endif

}  // namespace warpcipher::cpu
