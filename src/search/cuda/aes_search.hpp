// SPDX-License-Identifier: Apache-2.0
// The AES searches. One is part of the library: lane tables (engine/cuda/lane_table/table_layout.hpp), a key a thread,
// the key schedule made along with the rounds, and only as much of the last two rounds as two bytes of the ciphertext
// take; what passes that is computed in full. Where it is the plaintext that is known in part, keys are tested by
// decryption. The other has a kernel of its own for each template (aes_ptx.hpp), and searches short ranges as the first
// does.
#pragma once

#include "engine/cuda/runtime/device.hpp"
#include "search/cuda/aes_ptx.hpp"
#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {

// On the current device, which has that many multiprocessors.
std::unique_ptr<UnitSearch> make_aes_search(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                            std::uint32_t multiprocessors);

// What suits a device.
AesPolicy choose_aes_policy(const warpcipher::cuda::Device& device);

// Whether the template has loops.many free bits, the plaintext is known in full and the ciphertext by 24 bits (one of
// them may be a counter and a key stream).
bool suits_fast_aes(const KeySpace& space, const KeyTest& test, const UnitLoops& loops);

// On the current device, which memory has been allocated on. Compiles the kernel, and finds a planted key with it.
// Throws Error{engine_failure}.
std::unique_ptr<UnitSearch> make_fast_aes_search(std::shared_ptr<const KeySpace> space,
                                                 std::shared_ptr<const KeyTest> test, std::uint32_t multiprocessors,
                                                 const UnitLoops& loops, const AesPolicy& policy);

}  // namespace warpcipher::search::cuda
