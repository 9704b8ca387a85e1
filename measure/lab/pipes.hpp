// SPDX-License-Identifier: Apache-2.0
// The highest rates of a multiprocessor, measured on this device: benchmarks compare kernels with these rates, not with
// a datasheet. The clock is read on the device at the same time. Only in a build with CUDA.
#pragma once

#include <cstdint>

#include "engine/stream.hpp"

namespace warpcipher::lab {

enum class Pipe : std::uint8_t {
  shared_load,  // 32-bit loads from shared memory, each lane from its own bank
  logic,        // three-input logic operations on 32-bit registers
};

struct PipeRate {
  double per_clock;  // operations of lanes for each clock and multiprocessor
  double clock_hz;   // of the multiprocessors, meanwhile
};

// Runs one block of 1024 threads on each multiprocessor of the current device, and waits. Each thread performs
// `operations` operations, rounded up to a whole loop. 2^17 take about two milliseconds. Throws Error{engine_failure,
// out_of_memory}.
PipeRate measure_pipe(Pipe pipe, std::uint32_t operations, Stream stream);

// Starts a kernel that does nothing, on the current device. Does not wait. Throws Error{engine_failure}.
void launch_nothing(Stream stream);

}  // namespace warpcipher::lab
