// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/parallel.cuh"

namespace warpcipher::cuda::lane_table {

template void launch_parallel<EcbEncryption>(const ParallelLaunch&, EcbEncryption::Parameters);

template void launch_parallel<EcbDecryption>(const ParallelLaunch&, EcbDecryption::Parameters);

}  // namespace warpcipher::cuda::lane_table
