// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/batch/des_batch.hpp"
#include "engine/cuda/bitslice/des.hpp"
#include "engine/cuda/chains.hpp"
#include "engine/cuda/group_run.hpp"

namespace warpcipher::cuda::bitslice {

void run_parallel(const GroupRun& run) {
  const DesBatch batch(run);
  run_tiles(
      run.device, run.stream, *run.group.algorithm, run.group.direction,
      {batch.views(), batch.first_tile(), run.group.tiles(), static_cast<std::uint32_t>(run.group.messages.size())},
      batch.schedules(), needs_chains(run));
}

}  // namespace warpcipher::cuda::bitslice
