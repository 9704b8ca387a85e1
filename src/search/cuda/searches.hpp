// SPDX-License-Identifier: Apache-2.0
// The fast search for DES and triple DES: it writes a kernel for the template (des_ptx.hpp), and runs it over granules.
// Triple DES with one unknown key becomes a search for DES: the known keys are stripped from both ends. Where bits of
// several keys vary, or of a key that is used twice, the kernel has all passes from that of the first such key to that
// of the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cuda/runtime/device.hpp"
#include "search/cuda/aes_ptx.hpp"
#include "search/cuda/des_layout.hpp"
#include "search/cuda/unit_search.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search::cuda {

// The policies for a device; the first suits most kernels. A device with little shared memory gets fewer spills and
// granules. Throws nothing.
std::vector<DesPolicy> des_policies(const warpcipher::cuda::Device& device);

class DesSearch {
 public:
  // The number of passes of DES, 1 to 3, that its kernel runs for each key. 0: it has no kernel, because there are
  // too few free bits, or too few known bits of the block.
  static std::size_t passes(const KeySpace& space, const KeyTest& test, const DesShape& shape);

  // On the current device, where memory has been allocated. Compiles a kernel by the policy with the least work, and
  // finds planted keys with it. Throws Error{engine_failure}.
  DesSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const DesShape& shape,
            std::span<const DesPolicy> policies);
  ~DesSearch();

  // As SearchTask::run.
  std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                    const std::atomic<bool>& cancel);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

// The DES search that takes any template and mask: DES and triple DES, one key in each of the 32 bits of a word, with a
// kernel of the library. It is for templates with too few free bits in one key for their own kernel, and for
// searches that are too short to wait until one is compiled.

// For a device with that many multiprocessors.
UnitCounts des_units_of(std::uint32_t multiprocessors);

// On the current device.
std::unique_ptr<UnitSearch> make_generic_des(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                             const UnitCounts& units, const LaunchTimes& times = {});

// The AES searches. The kernel of the first is part of the library. It uses lane tables
// (engine/cuda/aes/table_layout.hpp) and tests one key in each thread. It computes the key schedule along with
// the rounds, and of the last two rounds only the part for two bytes of the ciphertext; keys that pass are computed in
// full. If the plaintext is known only in part, it tests keys by decryption. The second search writes a kernel for each
// template (aes_ptx.hpp), and searches short ranges as the first does.

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
