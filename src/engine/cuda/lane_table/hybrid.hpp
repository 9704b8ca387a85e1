// SPDX-License-Identifier: Apache-2.0
// The counter mode by hybrid kernels (hybrid.cuh): when, and the calls.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/lane_table/table_layout.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

struct BatchSource;
struct OneKeySource;
struct SingleSource;

// 69 MB on H200, whose last tiles are then made up for: 134 MB 886 GB/s, by tables alone 835, 67 MB 762 and 772.
inline constexpr std::uint64_t least_hybrid_tiles_of_multiprocessor = 128;

// What WARPCIPHER_COUNTER forces: "packed" or "together" (for batches), "mixed" or "tiles"; or nothing.
std::string_view forced_counter();

// Whether the device has the kernel: it is compiled for the compute capability that it was measured on.
bool has_hybrid(const Device& device);

// Whether a message had better be run so. Throws as choose_table_layout does for values of WARPCIPHER_COUNTER.
bool choose_hybrid_counter(const Device& device, TableLayout layout, const SingleSource& message);

// message.start: the first counter; in and out are multiples of 16. wrap_32, verdicts: as CounterParameters.
void run_hybrid_counter(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
                        const std::uint32_t* verdicts);

// The same for a batch with so many tiles, of one key or many.
bool choose_hybrid_batch(const Device& device, TableLayout layout, std::uint64_t tiles);
void run_hybrid_batch(const Device& device, Stream stream, const OneKeySource& batch, bool wrap_32,
                      const std::uint32_t* verdicts, const Guess& guess);
void run_hybrid_batch(const Device& device, Stream stream, const BatchSource& batch, bool wrap_32,
                      const std::uint32_t* verdicts, const Guess& guess);

// The same for short messages of one key, several to a tile (hybrid_packed.cuh): where all are of one length, most
// places of a tile are filled. units: of all, most_units: of one.
inline constexpr std::uint64_t most_units_of_hybrid_packed = 256;
bool choose_hybrid_packed(const Device& device, TableLayout layout, std::uint32_t messages, std::uint64_t units,
                          std::uint64_t most_units);
void run_hybrid_packed(const Device& device, Stream stream, const OneKeySource& batch, std::uint64_t most_units,
                       bool wrap_32, const std::uint32_t* verdicts, const Guess& guess);

}  // namespace warpcipher::cuda::lane_table
