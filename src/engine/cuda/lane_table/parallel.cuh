// SPDX-License-Identifier: Apache-2.0
// The one kernel of all parallel modes: persistent blocks, tables filled once a block, a warp a tile.
#pragma once

#include "engine/cuda/lane_table/cipher.cuh"
#include "engine/cuda/lane_table/counter.cuh"
#include "engine/cuda/lane_table/modes.cuh"
#include "engine/cuda/lane_table/parallel.hpp"
#include "engine/cuda/lane_table/xts.cuh"

namespace warpcipher::cuda::lane_table {

template <class Mode, class Tables, int Rounds, class Source>
__global__ void __launch_bounds__(block_threads, 1)
    parallel_kernel(const __grid_constant__ Source source,
                    const __grid_constant__ typename Mode::Parameters parameters) {
  fill_tables<Tables, Mode::inverse>();
  __syncthreads();
  // Neighbouring tiles go to different multiprocessors, so that a short message keeps as many as it can busy.
  const std::uint32_t first = blockIdx.x + gridDim.x * warp_index();
  const std::uint32_t stride = gridDim.x * (blockDim.x / warp_len);
  Mode mode;
  for (std::uint32_t number = first; number < source.tiles; number += stride) {
    if constexpr (requires { mode.look_ahead(source, number, stride); }) mode.look_ahead(source, number, stride);
    const Tile tile = source.template find<Mode>(number);
    const typename Source::Key key = source.key(tile);
    const LaneCipher<Tables, Mode::inverse, Rounds, typename Source::Key> cipher(key, source.rounds);
    mode.tile(cipher, tile, parameters);
  }
}

// A block has as many warps as it has tiles, up to 32: more would only wait for the tables.
inline LaunchShape parallel_shape(const Device& device, std::uint64_t tiles, std::size_t shared_len) {
  const std::uint64_t blocks = tiles < device.multiprocessors ? tiles : device.multiprocessors;
  std::uint64_t warps = (tiles + blocks - 1) / blocks;
  if (warps > block_threads / warp_len) warps = block_threads / warp_len;
  if (warps < 8) warps = 8;  // to fill the tables sooner
  return {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(warps * warp_len), shared_len};
}

template <class Mode, class Tables, int Rounds, class Source>
void launch_kernel(const ParallelLaunch& run, const Source& source, const typename Mode::Parameters& parameters) {
  launch(&parallel_kernel<Mode, Tables, Rounds, Source>, parallel_shape(run.device, source.tiles, Tables::shared_len),
         run.stream, source, parameters);
}

template <class Mode>
void launch_parallel(const ParallelLaunch& run, typename Mode::Parameters parameters) {
  if constexpr (requires { parameters.set_stride(std::uint64_t{}); }) {
    const std::uint64_t tiles = run.single != nullptr ? run.single->tiles : run.batch->tiles;
    const LaunchShape shape = parallel_shape(run.device, tiles, 0);
    parameters.set_stride(std::uint64_t{shape.blocks} * (shape.threads / warp_len));
  }
  const auto launch_unrolled = [&](const auto& source) {
    switch (source.rounds) {
      case 10:
        return launch_kernel<Mode, Tables128, 10>(run, source, parameters);
      case 14:
        return launch_kernel<Mode, Tables128, 14>(run, source, parameters);
      default:
        if constexpr (!keeps_one_key<Mode>) return launch_kernel<Mode, Tables128, 0>(run, source, parameters);
    }
  };
  if (run.batch != nullptr) {
    if (run.form == Form::tables_128) return launch_kernel<Mode, Tables128, 0>(run, *run.batch, parameters);
    return launch_kernel<Mode, Tables64, 0>(run, *run.batch, parameters);
  }
  if constexpr (keeps_one_key<Mode>) {
    launch_unrolled(*run.one_key);
  } else {
    if (run.form == Form::tables_64) return launch_kernel<Mode, Tables64, 0>(run, *run.single, parameters);
    if constexpr (requires { Mode::unrolled; }) {
      launch_kernel<Mode, Tables128, 0>(run, *run.single, parameters);
    } else {  // without this branch the kernels that nobody launches would be compiled
      launch_unrolled(*run.single);
    }
  }
}

}  // namespace warpcipher::cuda::lane_table
