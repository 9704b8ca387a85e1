// SPDX-License-Identifier: Apache-2.0
// The AES search: lane tables (engine/cuda/lane_table/form.hpp), a key a thread, the key schedule made along with the
// rounds, and only as much of the last two rounds as two bytes of the ciphertext take. What passes that, and what such
// a test does not fit (a plaintext known in part), is computed in full.
#pragma once

#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {

// On the current device, which has that many multiprocessors.
std::unique_ptr<UnitSearch> make_aes_search(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                            std::uint32_t multiprocessors);

}  // namespace warpcipher::search::cuda
