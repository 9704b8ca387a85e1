// SPDX-License-Identifier: Apache-2.0
// Prepares a group of a serial mode: views and schedules.
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/batch/des_batch.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/lane_table/serial_aes.hpp"
#include "engine/cuda/lane_table/serial_des.hpp"

namespace warpcipher::cuda::lane_table {

void run_serial(const GroupRun& run) {
  const Mode mode = run.group.algorithm->mode.id;
  const auto messages = static_cast<std::uint32_t>(run.group.messages.size());
  if (is_aes(run.group.algorithm->cipher.id)) {
    const AesBatch batch(run);
    run_serial_batch(run.device, run.stream, mode,
                     SerialBatch{batch.views(), nullptr, batch.round_keys(), messages, batch.rounds()});
  } else {
    const DesBatch batch(run);
    run_serial_batch(run.device, run.stream, mode, SerialDesBatch{batch.views(), nullptr, batch.schedules(), messages});
  }
}

}  // namespace warpcipher::cuda::lane_table
