// SPDX-License-Identifier: Apache-2.0
// The search kernel for DES as text: whichever bits are unknown, all that a loop reads is there.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "search/cuda/des_circuit.hpp"
#include "search/cuda/des_layout.hpp"
#include "search/cuda/des_ptx.hpp"

namespace warpcipher::search::cuda {
namespace {

// A loop reads bits of half blocks that a known pass makes outside of it, and key bits of loops between the two are
// added to them. A known pass is not run again, so each of its bits needs a place. write_des_kernel() refuses a kernel
// that lacks one.
TEST(SearchDesKernel, KeepsAllThatAKnownPassMakes) {
  const std::vector<DesPass> passes{{0, false, false}, {1, true, true}, {2, false, false}};
  const DesShape shape{3, 5, 3, 0};
  // In the order of the number: ten bits of the third key, some of which become the loops, then six of the first.
  const std::vector<std::uint8_t> positions{154, 135, 114, 153, 141, 162, 157, 142, 152, 159, 35, 53, 2, 36, 52, 26};
  for (const int half : {11, 12}) {
    const DesCircuit circuit(passes, Meeting{2, half});
    std::vector<Comparison> compared;
    const DesLayout layout = choose_layout(circuit, positions, shape, compared);
    for (const std::uint32_t slots : {60u, 148u}) {
      DesPolicy policy;
      policy.slots = slots;
      EXPECT_NO_THROW(write_des_kernel(circuit, compared, positions, layout, policy)) << half << ", " << slots;
    }
  }
}

}  // namespace
}  // namespace warpcipher::search::cuda
