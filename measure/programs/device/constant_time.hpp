// SPDX-License-Identifier: Apache-2.0
// The kernels that constant_time.cpp has in addition to the engine's: texts made on the device, lookups without any
// memory traffic, and the control.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace constant_time {

// Texts are made by arithmetic that is the same for all: block i is (a hash of seed and i) & mask ^ value.
struct Pattern {
  std::uint32_t seed;
  std::uint32_t mask;  // 0: every word is `value`
  std::uint32_t value;
};

// Writes `len` bytes, a multiple of 16.
void fill(std::uint8_t* text, std::size_t len, const Pattern& pattern, cudaStream_t stream);

// Keeps the device busy for about `clocks`, while the host enqueues what is to be measured.
void spin(std::uint32_t clocks, cudaStream_t stream);

enum class Lookups {
  lane_tables,          // AES-128 as the library does it
  lane_tables_inverse,  // the same, decryption
  leaking_tables,       // the control: four tables of 1 KiB in shared memory, as in the papers. Its time tells the data
};

// A block of threads a multiprocessor encrypts blocks of the pattern in registers and keeps one word of what they are
// XORed together; the global memory that it touches is `sink`, a word for each of its threads. words: the round keys as
// AesKeyState has them.
inline constexpr std::uint32_t lookup_threads = 1024;
void run_lookups(Lookups lookups, const std::uint32_t* words, const Pattern& pattern, std::uint32_t* sink,
                 std::uint32_t multiprocessors, cudaStream_t stream);

}  // namespace constant_time
