// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/parallel.cuh"

namespace warpcipher::cuda::lane_table {

template void launch_parallel<XtsMode<false>>(const ParallelLaunch&, XtsMode<false>::Parameters);

template void launch_parallel<XtsMode<true>>(const ParallelLaunch&, XtsMode<true>::Parameters);

}  // namespace warpcipher::cuda::lane_table
