// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/parallel.cuh"

namespace warpcipher::cuda::lane_table {

template void launch_parallel<XtsMode<false>>(const ParallelLaunch&, XtsMode<false>::Parameters);

}  // namespace warpcipher::cuda::lane_table
