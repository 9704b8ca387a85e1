// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/parallel.cuh"

namespace warpcipher::cuda::lane_table {

template void launch_parallel<CbcDecryption>(const ParallelLaunch&, CbcDecryption::Parameters);

template void launch_parallel<CfbDecryption>(const ParallelLaunch&, CfbDecryption::Parameters);

template void launch_parallel<Cfb8Decryption>(const ParallelLaunch&, Cfb8Decryption::Parameters);

}  // namespace warpcipher::cuda::lane_table
