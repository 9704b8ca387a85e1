// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/parallel.cuh"

namespace warpcipher::cuda::lane_table {

template void launch_parallel<CounterMode>(const ParallelLaunch&, CounterMode::Parameters);
template void launch_parallel<LittleEndianCounterMode>(const ParallelLaunch&, LittleEndianCounterMode::Parameters);
template void launch_parallel<UnalignedCounterMode>(const ParallelLaunch&, UnalignedCounterMode::Parameters);
template void launch_parallel<UnalignedLittleEndianCounterMode>(const ParallelLaunch&,
                                                                UnalignedLittleEndianCounterMode::Parameters);

}  // namespace warpcipher::cuda::lane_table
