// SPDX-License-Identifier: Apache-2.0
// The DES search that takes any template and mask: DES and triple DES, one key in each of the 32 bits of a word, with a
// kernel of the library. It is for templates with too few free bits in one key for their own kernel, and for
// searches that are too short to wait until one is compiled.
#pragma once

#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {

// For a device with that many multiprocessors.
UnitCounts des_units_of(std::uint32_t multiprocessors);

// On the current device.
std::unique_ptr<UnitSearch> make_generic_des(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                             const UnitCounts& units, const LaunchTimes& times = {});

}  // namespace warpcipher::search::cuda
