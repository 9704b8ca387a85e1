// SPDX-License-Identifier: Apache-2.0
// What the host side of the lane-table family asks its kernels for. Each mode's kernels are compiled in a file of their
// own.
#pragma once

#include "engine/cuda/lane_table/form.hpp"
#include "engine/cuda/lane_table/source.cuh"

namespace warpcipher::cuda::lane_table {

// Whether a mode's batches of one key have kernels of their own (OneKeySource), and its single messages have not: XTS,
// whose keys are of 10 or 14 rounds.
template <class Mode>
inline constexpr bool keeps_one_key = requires { Mode::many_messages; };

// One of the sources is set. one_key: only for modes that keep it, and in the form tables_128; they have no `single`.
struct ParallelLaunch {
  const Device& device;
  Stream stream;
  Form form;
  const SingleSource* single = nullptr;
  const OneKeySource* one_key = nullptr;
  const BatchSource* batch = nullptr;
};

// Mode: a struct of modes.cuh or xts.cuh.
template <class Mode>
void launch_parallel(const ParallelLaunch& run, typename Mode::Parameters parameters);

}  // namespace warpcipher::cuda::lane_table
