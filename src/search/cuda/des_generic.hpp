// SPDX-License-Identifier: Apache-2.0
// The DES search that takes anything: a key for each of the 32 bits of a word. DES and triple DES, any template, any
// mask, nothing compiled at run time. For what has too few free bits in one key for a kernel of its own, or too few
// keys to wait for one.
#pragma once

#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {

// On the current device, which has that many multiprocessors.
std::unique_ptr<UnitSearch> make_generic_des(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                             std::uint32_t multiprocessors);

}  // namespace warpcipher::search::cuda
