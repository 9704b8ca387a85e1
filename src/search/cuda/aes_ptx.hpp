// SPDX-License-Identifier: Apache-2.0
// The search kernel for AES, written as PTX for one template. It depends on which bytes the loops change, not on the
// values of the others. So neither the PTX nor the driver's compiled copy on disk contains any part of the key, and one
// kernel works for all values of the known bits. The driver compiles it; no toolkit is needed.
//
// A thread tests one key at a time. It has nested loops, one for each byte with unknown bits; a loop steps through the
// values of its bits by x = (x - bits) & bits. Values that a loop does not change are computed outside of it
// (aes_circuit.hpp) and kept in a register, so the innermost loop computes little of rounds 1 and 2 and of the
// schedule. Then it compares one byte of the ciphertext: one key in 256 passes, so one warp in eight continues. Then it
// compares three more bytes, which need one column of the state before the last round. If not all of the ciphertext is
// known, it takes the column with the most known bits, and further columns for the keys that are left.
//
// Lane tables (engine/cuda/aes/table_layout.hpp) have rows of 128 bytes, T0 for all x first. The address of a
// lookup is one four-byte dot product. It runs on the multiply pipe, which is otherwise idle:
//
//   dp4a(word, 128 << 8 k, 4 lane) = 128 (byte k) + 4 lane
//
// The S-box values of the schedule are bytes of the same tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "search/cuda/aes_circuit.hpp"

namespace warpcipher::search::cuda {

// Never changes the result. H200, 60 random bits unknown, G keys/s:
//
//   threads        512    768    1024
//   AES-128        62.1   61.1   62.1    2 tables, 1024 threads: 58.9
//   AES-192               53.3   54.1
//   AES-256        44.3   41.7   43.2    (with 1024 some registers are spilled)
struct AesPolicy {
  std::uint32_t threads = 512;  // of a block; one block runs on a multiprocessor
  std::uint32_t tables = 4;     // or 2: T2 and T3 are T0 and T1 rotated, for GPUs with less shared memory
  friend bool operator==(const AesPolicy&, const AesPolicy&) = default;
};

// The parameters of a launch. Words are as a little-endian machine loads them.
struct AesParameters {
  std::uint64_t keys;     // address: the key of each unit, its loop bits zero
  std::uint64_t entries;  // address: T0
  std::uint64_t hits;     // address: the number of hits, as 32 bits of 128, then the hits
  std::uint32_t units, capacity;
  std::uint32_t in[4], expected[4], mask[4];
  std::uint32_t bits[most_aes_groups];  // of each group, in its word
};
static_assert(sizeof(AesParameters) == 128, "the kernel reads it by offsets");

// A compared byte of the ciphertext, by its position before the last ShiftRows.
struct AesByte {
  std::uint8_t column, row;

  std::size_t output_column() const { return (column + 4u - row) % 4; }
};

// The bytes to compare: with 32 known bits, or all known bits if there are fewer. Column by column; those with the most
// known bits come first.
std::vector<AesByte> choose_aes_bytes(const std::array<std::uint8_t, 16>& mask);

// A hit: the known bits of these bytes match. Turns count from 0 through all loops.
struct AesHit {
  std::uint32_t unit, turn, one, zero;
};

struct AesKernel {
  static constexpr const char* name = "search_aes";
  std::string ptx;
  std::size_t shared_len;  // bytes for each block
};

// groups: the innermost loop first, so by level. bytes: at least one.
AesKernel write_aes_kernel(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels,
                           std::span<const AesByte> bytes, const AesPolicy& policy);

}  // namespace warpcipher::search::cuda
