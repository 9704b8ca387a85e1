// SPDX-License-Identifier: Apache-2.0
// What a multiprocessor can do at most, measured on the spot: benchmarks hold kernels against these rates, not against
// a datasheet. The clock comes with them, read on the device itself while it works.
#pragma once

#include <cstdint>

#include "engine/stream.hpp"

namespace warpcipher::cuda {

enum class Pipe : std::uint8_t {
  shared_load,  // 32-bit loads from shared memory, each lane from its own bank
  logic,        // three-input logic operations on 32-bit registers
};

struct PipeRate {
  double per_clock;  // operations of one lane, a clock and multiprocessor
  double clock_hz;   // of the multiprocessors, meanwhile
};

// Runs one block of 1024 threads on each multiprocessor of the current device, each thread `operations` of them
// (rounded up to a whole loop), and waits. 2^17 take about two milliseconds. Throws Error{engine_failure,
// out_of_memory}.
PipeRate measure_pipe(Pipe pipe, std::uint32_t operations, Stream stream);

// Starts a kernel that does nothing, on the current device. Does not wait. Throws Error{engine_failure}.
void launch_nothing(Stream stream);

}  // namespace warpcipher::cuda
