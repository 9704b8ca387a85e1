// SPDX-License-Identifier: Apache-2.0
// The fast search for DES and triple DES: a kernel of its own for the template (des_ptx.hpp), run over granules. Triple
// DES with one unknown key becomes a search for DES: the known keys are stripped from both ends. Where bits of several
// keys vary, or of a key that is used twice, the kernel has all passes from that of the first such key to that of the
// last.
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

// What suits a device, the one for most kernels first: a device with little shared memory gets fewer slots and
// granules. Throws nothing.
std::vector<DesPolicy> des_policies(const warpcipher::cuda::Device& device);

class DesSearch {
 public:
  // The passes of DES, 1 to 3, that its kernel runs for each key; 0 where it has none: too few free bits, or too few
  // known ones of the block.
  static std::size_t passes(const KeySpace& space, const KeyTest& test, const DesShape& shape);

  // On the current device, which memory has been allocated on. Compiles a kernel by one of the policies, whichever
  // takes the least work, and finds planted keys with it. Throws Error{engine_failure}.
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
