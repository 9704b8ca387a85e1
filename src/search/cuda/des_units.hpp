// SPDX-License-Identifier: Apache-2.0
// The kernel of the DES search that takes any template (des_generic.hpp): each thread tests the keys of as many units
// as a word has bits. des_generic.hpp has no kernel, so only the host's compiler compiles it.
#pragma once

#include <cstdint>

#include "engine/stream.hpp"
#include "search/cuda/unit_loops.hpp"

namespace warpcipher::search::cuda {

struct DesUnits {
  static constexpr std::uint32_t threads = 64;  // of a block: 48 KiB of planes for three keys
  static constexpr std::uint32_t lanes = 32;    // units of a thread

  std::uint32_t text[64], expected[64], mask[64];  // planes, 0 or ~0
  std::uint8_t toggles[UnitLoops::most];           // the plane of each loop bit
  const std::uint8_t* keys;                        // of each unit
  const std::uint8_t* indices;                     // subkey_planes from the first pass on
  std::uint32_t* hits;                             // their number, three words, the hits
  std::uint32_t units, key_len, passes, loops, capacity;
  std::uint8_t key_of_pass[4];
};

// On the current device; does not wait.
void launch_des_units(const DesUnits& p, Stream stream);

}  // namespace warpcipher::search::cuda
