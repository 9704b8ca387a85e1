// SPDX-License-Identifier: Apache-2.0
// The search kernel for DES, written as PTX for one template: which bits of the key are unknown, not what the others
// are. So neither the text nor what the driver makes of it and keeps on disk holds any of the key, and one kernel
// serves all values of the known bits. The driver alone compiles it; no toolkit is needed.
//
// A thread has 32 keys in a word, and a loop for each of the layout's loop bits, of two turns, one in the other. A node
// of the circuit is computed in the innermost loop whose bit it depends on, or further out; what crosses a loop's
// border lies in shared memory, a slot for each node and thread, so that registers are for the innermost loop.
//
// Adding a key bit. The logic pipe is what limits the search, so a bit that is the same in all 32 keys of a word, a
// mask k of ones or zeros, is added on the multiply pipe: x ^ k = (2 x + 1) k + x, which for k = -1 is -x - 1 = ~x.
// That takes two multiply-adds, the first shared by the uses of x. Or it costs nothing: in the three-input gate that
// makes x.
//
// One key in 2^8 passes the loops. A turn notes the word of its keys, where it has such a key, and goes on: what else
// the warp did for it, most of its lanes would do for nothing, and other warps would wait. When the loops are over, the
// thread tests what it has noted, 32 keys at once, each with a key of its own (des_check.hpp).
//
// The innermost loop is some 45 KB of code, more than the caches next to the schedulers hold. Barriers keep the warps
// of a block close together, so that what one fetches serves all; that is also why one large block is better than
// several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "search/cuda/des_layout.hpp"
#include "search/cuda/des_placement.hpp"

namespace warpcipher::search::cuda {

// What a launch gets by value. A bit that varies within the launch has a plane of 0.
struct DesParameters {
  std::uint32_t planes[most_key_bits];  // 0 or ~0, by position
  std::uint32_t inputs[des_inputs];     // 0 or ~0, as Node::table numbers them
  std::uint32_t one = 1, two = 2;       // unknown to the compiler, which would turn the products into shifts
  std::uint32_t zero = 0;               // unknown to it too, or it would unroll the loops
  std::uint32_t granule;                // the low bits of the number of the first granule
  std::uint32_t capacity;               // hits that there is room for
  std::uint32_t unused = 0;
  std::uint64_t hits;  // address: the number of hits, as 32 bits of 128, then the hits
};
static_assert(sizeof(DesParameters) == 1216, "the kernel reads it by offsets");

// Keys of one turn of one thread that passed.
struct DesHit {
  std::uint32_t granule;  // from the first of the launch
  std::uint32_t thread;   // within the granule
  std::uint32_t turn;     // bit j: the value of loop bit j
  std::uint32_t lanes;    // a one for each key that passed
};

struct DesKernel {
  static constexpr const char* name = "search_des";
  std::string ptx;
  std::size_t shared_len;  // bytes a block
  std::uint32_t threads;   // of a block
  std::uint32_t granules;  // that a block works on
  double gates;            // of a turn, on the average
};

// compared: what the loops compare of the circuit; the known bits of the block are compared of what passes there.
// Throws Error{engine_failure} where the placement has no slot for a bit of a known pass that a loop further in reads.
DesKernel write_des_kernel(const DesCircuit& circuit, std::span<const Comparison> compared,
                           std::span<const std::uint8_t> positions, const DesLayout& layout, const DesPolicy& policy);

}  // namespace warpcipher::search::cuda
