// SPDX-License-Identifier: Apache-2.0
// How many keys a unit of a search has (unit_search.hpp). A separate header, because files with kernels include it.
#pragma once

#include <cstdint>

namespace warpcipher::search::cuda {

// How many of the lowest free bits a unit has, if the space has that many. Never changes the result.
struct UnitLoops {
  static constexpr std::uint32_t most = 12;
  static constexpr std::uint32_t fewest = 4;  // for devices that are too slow for longer units

  std::uint32_t many = 12;
  std::uint32_t few = 8;         // for a range that would not fill the device otherwise
  std::uint32_t log2_many = 30;  // ranges of at least this many keys get `many`
};

}  // namespace warpcipher::search::cuda
