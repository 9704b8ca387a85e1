// SPDX-License-Identifier: Apache-2.0
// The AES searches. The kernel of the first is part of the library. It uses lane tables
// (engine/cuda/aes/table_layout.hpp) and tests one key in each thread. It computes the key schedule along with
// the rounds, and of the last two rounds only the part for two bytes of the ciphertext; keys that pass are computed in
// full. If the plaintext is known only in part, it tests keys by decryption. The second search writes a kernel for each
// template (aes_ptx.hpp), and searches short ranges as the first does.
#pragma once

#include "engine/cuda/runtime/device.hpp"
#include "search/cuda/aes_ptx.hpp"
#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {

// On the current device, which has that many multiprocessors.
std::unique_ptr<UnitSearch> make_aes_search(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                            std::uint32_t multiprocessors);

// The best policy for a device.
AesPolicy choose_aes_policy(const warpcipher::cuda::Device& device);

// Whether the template has loops.many free bits, the plaintext is known in full, and 24 bits of the ciphertext are
// known. (The pair may also be a counter and a key stream.)
bool suits_fast_aes(const KeySpace& space, const KeyTest& test, const UnitLoops& loops);

// On the current device, where memory has been allocated. Compiles the kernel, and finds a planted key with it. Throws
// Error{engine_failure}.
std::unique_ptr<UnitSearch> make_fast_aes_search(std::shared_ptr<const KeySpace> space,
                                                 std::shared_ptr<const KeyTest> test, std::uint32_t multiprocessors,
                                                 const UnitLoops& loops, const AesPolicy& policy);

}  // namespace warpcipher::search::cuda
