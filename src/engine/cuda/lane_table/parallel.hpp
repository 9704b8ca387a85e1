// SPDX-License-Identifier: Apache-2.0
// What the host side of the lane-table family asks its kernels for. Each mode's kernels are compiled in a file of their
// own.
#pragma once

#include "engine/cuda/lane_table/form.hpp"
#include "engine/cuda/lane_table/source.cuh"
#include "engine/cuda/launch.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
class Key;
}  // namespace warpcipher

namespace warpcipher::cuda::lane_table {

// Whether a mode's batches of one key have kernels of their own (OneKeySource), and its single messages have not: XTS,
// whose keys are of 10 or 14 rounds.
template <class Mode>
inline constexpr bool keeps_one_key = requires { Mode::many_messages; };

// Whether batches of one key have kernels with the key as a parameter.
template <class Mode>
inline constexpr bool takes_one_key = keeps_one_key<Mode> || requires { Mode::runs_of_tiles; };

// One of the sources is set. one_key: only for modes that take it, with keys of 10 or 14 rounds, and in the form
// tables_128; those that keep it have no `single`.
struct ParallelLaunch {
  const Device& device;
  Stream stream;
  Form form;
  const SingleSource* single = nullptr;
  const OneKeySource* one_key = nullptr;
  const BatchSource* batch = nullptr;
};

// A block has as many warps as it has tiles, up to 32: more would only wait for the tables.
inline LaunchShape parallel_shape(const Device& device, std::uint64_t tiles, std::size_t shared_len,
                                  std::uint32_t most_threads = block_threads) {
  const std::uint64_t blocks = tiles < device.multiprocessors ? tiles : device.multiprocessors;
  std::uint64_t warps = (tiles + blocks - 1) / blocks;
  if (warps > most_threads / warp_len) warps = most_threads / warp_len;
  if (warps < 8) warps = 8;  // to fill the tables sooner
  return {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(warps * warp_len), shared_len};
}

// A batch in a mode that is neither CTR nor GCM. units: of all messages. in_place: some messages lie where their output
// goes. only_key: of all messages, or nullptr.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const BatchSource& batch, std::uint64_t units, bool in_place, const Key* only_key);

// Mode: a struct of modes.cuh or xts.cuh.
template <class Mode>
void launch_parallel(const ParallelLaunch& run, typename Mode::Parameters parameters);

}  // namespace warpcipher::cuda::lane_table
