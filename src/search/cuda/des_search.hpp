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
#include "search/cuda/des_layout.hpp"
#include "search/cuda/des_placement.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search::cuda {

// The policies for a device; the first suits most kernels. A device with little shared memory gets fewer spills and
// granules. Throws nothing.
std::vector<DesPolicy> des_policies(const warpcipher::cuda::Device& device);

class DesSearch {
 public:
  // The number of passes of DES, 1 to 3, that its kernel runs for each key. 0: there is no kernel, because there are
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

}  // namespace warpcipher::search::cuda
