// SPDX-License-Identifier: Apache-2.0
// How many keys a unit of a search has (unit_search.hpp): apart, for files with kernels.
#pragma once

#include <cstdint>

namespace warpcipher::search::cuda {

// How many of the lowest free bits a unit has, if there are so many; never changes the result.
struct UnitLoops {
  static constexpr std::uint32_t most = 12;
  static constexpr std::uint32_t fewest = 4;  // where a unit of more takes a slow device too long

  std::uint32_t many = 12;
  std::uint32_t few = 8;         // for a range that would not fill the device else
  std::uint32_t log2_many = 30;  // from so many keys on a range gets `many`
};

}  // namespace warpcipher::search::cuda
