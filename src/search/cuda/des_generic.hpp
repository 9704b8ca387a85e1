// SPDX-License-Identifier: Apache-2.0
// The DES search that takes anything: a key for each of the 32 bits of a word. DES and triple DES, any template, any
// mask, nothing compiled at run time. For what has too few free bits in one key for a kernel of its own, or too few
// keys to wait for one.
#pragma once

#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {

// Of a device with that many multiprocessors.
UnitCounts des_units_of(std::uint32_t multiprocessors);

// On the current device.
std::unique_ptr<UnitSearch> make_generic_des(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                             const UnitCounts& units, const LaunchTimes& times = {});

}  // namespace warpcipher::search::cuda
