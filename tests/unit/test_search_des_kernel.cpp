// SPDX-License-Identifier: Apache-2.0
// The search kernel for DES as text: whichever bits are unknown, all that a loop reads is there.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
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
    for (const std::uint32_t spills : {60u, 148u}) {
      DesPolicy policy;
      policy.spills = spills;
      EXPECT_NO_THROW(write_des_kernel(circuit, compared, positions, layout, policy)) << half << ", " << spills;
    }
  }
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The outer key of two-key triple DES: 25 rounds of the innermost loop have 48 key bits each. Most are added in gates
// that are there anyway; for those that a second S-box takes there is one multiply-add. Gates and multiply-adds of both
// kinds limit the search, and with more instructions the loop would not fit in the caches.
TEST(SearchDesKernel, AddsKeyBitsInGatesThatAreThereAnyway) {
  const std::vector<DesPass> passes{{0, false, false}, {1, true, true}, {0, false, false}};
  std::vector<std::uint8_t> positions;  // all unknown bits of the first key, in some order
  for (std::uint8_t i = 0; i < 34; ++i) positions.push_back(static_cast<std::uint8_t>(i * 23 % des_key_bits));
  const DesCircuit circuit(passes, Meeting{2, 11});
  std::vector<Comparison> compared;
  const DesLayout layout = choose_layout(circuit, positions, DesShape(), compared);
  DesPolicy policy;
  policy.spills = 120;
  const DesKernel kernel = write_des_kernel(circuit, compared, positions, layout, policy);
  EXPECT_LT(kernel.gates, 9250);
  const std::size_t begin = kernel.ptx.find("$loop0:");
  const std::size_t end = kernel.ptx.find("@%again bra $loop0");
  ASSERT_NE(begin, kernel.ptx.npos);
  ASSERT_NE(end, kernel.ptx.npos);
  const std::string_view turn = std::string_view(kernel.ptx).substr(begin, end - begin);
  EXPECT_LT(count_of(turn, "\nmad.lo.u32 "), 620u);
  EXPECT_LT(count_of(turn, "\nxor.b32 "), 120u);
  EXPECT_LT(count_of(turn, ";\n"), 7600u);
  EXPECT_LE(kernel.shared_len, 227u * 1024);
}

}  // namespace
}  // namespace warpcipher::search::cuda
