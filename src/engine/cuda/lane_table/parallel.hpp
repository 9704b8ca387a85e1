// SPDX-License-Identifier: Apache-2.0
// What the host side of the lane-table family asks its kernels for. Each mode's kernels are compiled in a file of their
// own.
#pragma once

#include "engine/cuda/lane_table/form.hpp"
#include "engine/cuda/lane_table/source.cuh"

namespace warpcipher::cuda::lane_table {

// Either single or batch is set.
struct ParallelLaunch {
  const Device& device;
  Stream stream;
  Form form;
  const SingleSource* single;
  const BatchSource* batch;
};

// Mode: a struct of modes.cuh or xts.cuh.
template <class Mode>
void launch_parallel(const ParallelLaunch& run, typename Mode::Parameters parameters);

}  // namespace warpcipher::cuda::lane_table
