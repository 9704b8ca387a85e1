// SPDX-License-Identifier: Apache-2.0
// The search kernel for DES, written as PTX for one template. It depends on which bits of the key are unknown, not on
// the values of the others. So neither the PTX nor the driver's compiled copy on disk contains any part of the key, and
// one kernel works for all values of the known bits. The driver compiles it; no toolkit is needed.
//
// A thread has 32 keys in a word. It has nested loops of two turns, one for each of the layout's loop bits. A node of
// the circuit is computed in the innermost loop on whose bit it depends, or further out. A node that a loop further in
// reads is spilled: kept in shared memory, a word for each thread, so that the innermost loop has all registers.
//
// Adding a key bit. The logic pipe limits the search. So most key bits are added in gates that are there anyway, and
// the others by one multiply-add each: for a mask k of ones or zeros, x ^ k = (2 k + 1) x + k. des_masks.hpp says how.
//
// One key in 2^8 passes the loops. If a turn has such a key, it notes the word of its keys and continues: testing it at
// once would keep most lanes of the warp busy for nothing, and other warps waiting. After the loops the thread tests
// the noted keys in full, 32 at a time, one in each bit of a word.
//
// The innermost loop has about 40 KB of code for a pass, more than the caches next to the schedulers hold. Barriers
// keep the warps of a block close together, so that they share each fetch. For the same reason one large block is
// faster than several small ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "search/cuda/des_circuit.hpp"
#include "search/cuda/des_layout.hpp"

namespace warpcipher::search::cuda {

// The parameters of a launch. A bit that varies within the launch has a plane of 0.
struct DesParameters {
  std::uint32_t planes[most_key_bits];  // 0 or ~0, by position
  std::uint32_t inputs[des_inputs];     // 0 or ~0, as Node::table numbers them
  std::uint32_t zero = 0;               // unknown to the compiler, or it would unroll the loops
  std::uint32_t granule;                // the low bits of the number of the first granule
  std::uint32_t capacity;               // hits that the buffer has room for
  std::uint64_t hits;                   // address: the number of hits, as 32 bits of 128, then the hits
};
static_assert(sizeof(DesParameters) == 1208, "the kernel reads it by offsets");

// Keys of one turn of a thread that passed.
struct DesHit {
  std::uint32_t granule;  // from the first of the launch
  std::uint32_t thread;   // within the granule
  std::uint32_t turn;     // bit j: the value of loop bit j
  std::uint32_t lanes;    // a one for each key that passed
};

struct DesKernel {
  static constexpr const char* name = "search_des";
  std::string ptx;
  std::size_t shared_len;  // bytes for each block
  std::uint32_t threads;   // of a block
  std::uint32_t granules;  // that a block tests at the same time
  double gates;            // average of a turn
};

// compared: the comparisons in the loops. Keys that pass there are compared in all known bits of the block. Throws
// Error{engine_failure} if a loop further in reads a bit of a known pass that the placement does not spill.
DesKernel write_des_kernel(const DesCircuit& circuit, std::span<const Comparison> compared,
                           std::span<const std::uint8_t> positions, const DesLayout& layout, const DesPolicy& policy);

// The end of the search kernel for DES: it tests the keys that a thread has noted in full, 32 at a time, one in each
// bit of a word (Biham 1997). The keys differ only in lane and turn, so a few bits of each are moved into words; for
// all others the thread has words already. The loop has two rounds and is as short as possible, because it runs only
// once for 4096 keys.

struct DesCheck {
  // C and D of the key schedule of the present pass, each twice, one after another: the bits of a round are found by
  // advancing as far as the halves are rotated.
  static constexpr std::size_t key_words = 4 * 28;

  std::vector<DesPass> passes;
  std::uint64_t known = 0;                       // bit i: input 64 + i is to be compared
  std::uint32_t threads = 0;                     // of a block: the stride of a thread's words in shared memory
  std::vector<std::uint8_t> varying;             // positions of the key's bits: lanes, then turns
  std::array<std::string, des_inputs> inputs;    // the operands that hold the inputs
  std::array<std::string, most_key_bits> masks;  // likewise, by position; "[...]": in shared memory
};

// Beforehand, %note points past the last entry of `notes` in local memory. An entry is a word of differences and a
// turn, and there is room for one more. %spills points to the thread's words in shared memory, whose contents no
// thread needs any longer. They have keys afterwards. %granule and %thread go into the hits unchanged.
std::string write_des_check(const DesCheck& check);

}  // namespace warpcipher::search::cuda
