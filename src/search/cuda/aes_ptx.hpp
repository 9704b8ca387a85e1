// SPDX-License-Identifier: Apache-2.0
// The search kernel for AES, written as PTX for one template: which bytes the loops change, not what the others are. So
// neither the text nor what the driver makes of it and keeps on disk holds any of the key, and one kernel serves all
// values of the known bits. The driver alone compiles it; no toolkit is needed.
//
// A thread has one key at a time, and a loop for each byte of which the template leaves bits open, one in the other; a
// loop goes through the values of its bits by x = (x - bits) & bits. What a loop does not change is computed outside of
// it (aes_circuit.hpp) and waits in a register: of rounds 1 and 2 and of the schedule an innermost loop leaves little
// to do. Then one byte of the ciphertext is compared, of which one key in 256 is left, so one warp in eight; then three
// more, which take one column of the state before the last round. Where not all of the ciphertext is known, it is the
// column that tells most, and further ones for the keys that are left.
//
// Lane tables (engine/cuda/lane_table/table_layout.hpp) in rows of 128 bytes, T0 for all x first. The address of a
// lookup is one four-byte dot product, on the multiply pipe, which has nothing else to do:
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
  std::uint32_t threads = 512;  // of a block, which has a multiprocessor to itself
  std::uint32_t tables = 4;     // or 2: T2 and T3 are T0 and T1 rotated, for GPUs with less shared memory
  friend bool operator==(const AesPolicy&, const AesPolicy&) = default;
};

// What a launch gets by value. Words as a little-endian machine loads them.
struct AesParameters {
  std::uint64_t keys;     // address: the key of each unit, its loop bits zero
  std::uint64_t entries;  // address: T0
  std::uint64_t hits;     // address: the number of hits, as 32 bits of 128, then the hits
  std::uint32_t units, capacity;
  std::uint32_t in[4], expected[4], mask[4];
  std::uint32_t bits[most_aes_groups];  // of each group, in its word
};
static_assert(sizeof(AesParameters) == 128, "the kernel reads it by offsets");

// A byte of the ciphertext that is compared, by its place before the last ShiftRows.
struct AesByte {
  std::uint8_t column, row;

  std::size_t output_column() const { return (column + 4u - row) % 4; }
};

// The bytes to compare, so that 32 bits of the mask are, or all it has: column by column, those first that tell most.
std::vector<AesByte> choose_aes_bytes(const std::array<std::uint8_t, 16>& mask);

// A hit: what is known of these bytes is right. The turn counts from 0 through all loops.
struct AesHit {
  std::uint32_t unit, turn, one, zero;
};

struct AesKernel {
  static constexpr const char* name = "search_aes";
  std::string ptx;
  std::size_t shared_len;  // bytes a block
};

// groups: the innermost loop first, so by level. bytes: at least one.
AesKernel write_aes_kernel(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels,
                           std::span<const AesByte> bytes, const AesPolicy& policy);

}  // namespace warpcipher::search::cuda
