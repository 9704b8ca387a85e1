// SPDX-License-Identifier: Apache-2.0
// The kernel of all parallel modes: persistent blocks, tables filled once for each block, one warp for each tile.
#pragma once

#include <type_traits>

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/counter.cuh"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/aes/modes.cuh"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/aes/xts.cuh"

namespace warpcipher::cuda::lane_table {

// Whether batches of one key have their own kernels (OneKeySource) in a mode, and single messages do not: XTS, whose
// keys have 10 or 14 rounds.
template <class Mode>
inline constexpr bool keeps_one_key = requires { Mode::many_messages; };

// Whether batches of one key have kernels with the key as a parameter.
template <class Mode>
inline constexpr bool takes_one_key = keeps_one_key<Mode> || requires { Mode::runs_of_tiles; };

// If messages have many tiles each, a warp takes consecutive tiles, so that a mode computes values of the message once
// for several tiles. The tiles of a single message are dealt in turn.
template <class Mode, class Source>
inline constexpr bool takes_runs = !std::is_same_v<Source, SingleSource> && requires { Mode::runs_of_tiles; };

template <class Mode, class Tables, int Rounds, class Source>
__global__ void __launch_bounds__(block_threads, 1)
    parallel_kernel(const __grid_constant__ Source source,
                    const __grid_constant__ typename Mode::Parameters parameters) {
  fill_tables<Tables, Mode::inverse>();
  __syncthreads();
  // Consecutive tiles go to different multiprocessors, so that a short message keeps many of them busy.
  const std::uint32_t first = blockIdx.x + gridDim.x * warp_index();
  const std::uint32_t stride = gridDim.x * (blockDim.x / warp_len);
  Mode mode;
  using Key = typename Source::Key;
  const auto work = [&](std::uint32_t number) {
    if constexpr (requires { mode.look_ahead(source, number, stride); }) mode.look_ahead(source, number, stride);
    const TileView tile = source.template find<Mode>(number);
    const Key key = source.key(tile);
    const LaneCipher<Tables, Mode::inverse, Rounds, Key> cipher(key, source.rounds);
    mode.tile(cipher, tile, parameters);
  };
  if constexpr (takes_runs<Mode, Source>) {
    const std::uint64_t warp = blockIdx.x * (blockDim.x / warp_len) + warp_index();
    const auto end = static_cast<std::uint32_t>(source.tiles * (warp + 1) / stride);
#pragma unroll 1
    for (auto number = static_cast<std::uint32_t>(source.tiles * warp / stride); number < end; ++number) work(number);
  } else {
    for (std::uint32_t number = first; number < source.tiles; number += stride) work(number);
  }
}

template <class Mode, class Tables, int Rounds, class Source>
void launch_kernel(const ParallelLaunch& run, const Source& source, const typename Mode::Parameters& parameters) {
  launch(&parallel_kernel<Mode, Tables, Rounds, Source>,
         parallel_configuration(run.device, source.tiles, Tables::shared_len), run.stream, source, parameters);
}

template <class Mode, class Parameters>
void launch_parallel(const ParallelLaunch& run, Parameters parameters) {
  static_assert(std::is_same_v<Parameters, typename Mode::Parameters>);
  if constexpr (requires { parameters.set_stride(std::uint64_t{}); }) {
    if (run.single != nullptr) {
      const LaunchConfiguration configuration = parallel_configuration(run.device, run.single->tiles, 0);
      parameters.set_stride(std::uint64_t{configuration.blocks} * (configuration.threads / warp_len));
    }
  }
  const auto launch_unrolled = [&](const auto& source) {
    switch (source.rounds) {
      case 10: return launch_kernel<Mode, Tables128, 10>(run, source, parameters);
      case 14: return launch_kernel<Mode, Tables128, 14>(run, source, parameters);
      default: return launch_kernel<Mode, Tables128, 0>(run, source, parameters);
    }
  };
  if (run.batch != nullptr) {
    if (run.layout == TableLayout::tables_128) return launch_kernel<Mode, Tables128, 0>(run, *run.batch, parameters);
    return launch_kernel<Mode, Tables64, 0>(run, *run.batch, parameters);
  }
  if constexpr (takes_one_key<Mode>) {
    if (run.one_key != nullptr) {
      return run.one_key->rounds == 10 ? launch_kernel<Mode, Tables128, 10>(run, *run.one_key, parameters)
                                       : launch_kernel<Mode, Tables128, 14>(run, *run.one_key, parameters);
    }
  }
  if constexpr (!keeps_one_key<Mode>) {
    if (run.layout == TableLayout::tables_64) return launch_kernel<Mode, Tables64, 0>(run, *run.single, parameters);
    if constexpr (requires { Mode::unrolled; }) {
      launch_kernel<Mode, Tables128, 0>(run, *run.single, parameters);
    } else {  // without this branch, kernels that are never launched would be compiled
      launch_unrolled(*run.single);
    }
  }
}

}  // namespace warpcipher::cuda::lane_table
