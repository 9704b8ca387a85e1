// SPDX-License-Identifier: Apache-2.0
// The fast DES search: a kernel of its own for the template (des_ptx.hpp), run over granules. Triple DES with one key
// unknown is a search for DES once the known keys are peeled off from both ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/cuda/runtime/device.hpp"
#include "search/cuda/des_layout.hpp"
#include "search/cuda/des_placement.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search::cuda {

// What suits a device. Throws nothing; a device with little shared memory gets fewer slots and granules.
DesPolicy choose_des_policy(const warpcipher::cuda::Device& device);

class DesSearch {
 public:
  // Whether it can: the lowest granule_bits() free bits lie in one key that is used once, and what is behind that key
  // can be peeled off.
  static bool suits(const KeySpace& space, const KeyTest& test, const DesShape& shape);

  // On the current device, which memory has been allocated on. Compiles the kernel, and finds a planted key with it.
  // Throws Error{engine_failure}.
  DesSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const DesShape& shape,
            const DesPolicy& policy);
  ~DesSearch();

  // As SearchTask::run.
  std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                    const std::atomic<bool>& cancel);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace warpcipher::search::cuda
