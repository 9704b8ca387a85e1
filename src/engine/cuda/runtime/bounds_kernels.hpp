// SPDX-License-Identifier: Apache-2.0
// The kernels that measure a pipe (bounds.hpp). bounds.cu reads their results; it has no kernel, so the host's compiler
// alone compiles it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/runtime/bounds.hpp"

namespace warpcipher::cuda::bounds {

// 32 warps with eight independent operations each: enough in flight for any latency.
inline constexpr std::uint32_t threads = 1024;
inline constexpr std::uint32_t saved_ciphertext = 8;
inline constexpr std::uint32_t steps = 8;  // of each chain in a loop, so that the loop itself costs next to nothing
inline constexpr std::uint32_t loop_operations = saved_ciphertext * steps;

// The measurement of one block. It runs on one multiprocessor, so both counters belong to that.
struct Elapsed {
  std::uint64_t clocks;
  std::uint64_t nanoseconds;
};

// Each thread of each block, of `threads` threads, performs `loops` times loop_operations. elapsed, sink: device memory
// with one entry for each block, and one for each thread. shared_len: shared memory of a block, 8 KiB or more. On the
// current device; does not wait.
void launch_pipe(Pipe pipe, std::uint32_t blocks, std::size_t shared_len, Elapsed* elapsed, std::uint32_t* sink,
                 std::uint32_t loops, Stream stream);

}  // namespace warpcipher::cuda::bounds
