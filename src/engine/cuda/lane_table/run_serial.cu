// SPDX-License-Identifier: Apache-2.0
// Prepares a group of a serial mode: views and schedules.
#include <algorithm>

#include "cipher/des.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/lane_table/serial_aes.hpp"
#include "engine/cuda/lane_table/serial_des.hpp"
#include "engine/cuda/memory.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// The 48 bits of a subkey are six for each of S1 to S8; des.cuh draws where they go. The key schedule only moves bits
// to places that do not depend on them, so it takes the same time for every key.
uint2 pack_subkey(std::uint64_t subkey) {
  uint2 packed{0, 0};
  for (std::uint32_t pair = 0; pair < 4; ++pair) {
    packed.x = packed.x << 8 | static_cast<std::uint32_t>(subkey >> (42 - 12 * pair) & 63u);
    packed.y = packed.y << 8 | static_cast<std::uint32_t>(subkey >> (36 - 12 * pair) & 63u);
  }
  return packed;
}

void place_des_schedule(uint2* schedules, std::size_t i, const Key& key) {
  const Secret<des::reference::Schedule> schedule(des::reference::expand_key(key.bytes(), key.size()));
  for (std::uint32_t r = 0; r < 16 * static_cast<std::uint32_t>(schedule->passes); ++r) {
    schedules[(i / warp_len * serial_des_rounds + r) * warp_len + i % warp_len] =
        pack_subkey(schedule->subkeys[r / 16][r % 16]);
  }
}

void run_serial_aes(const GroupRun& run) {
  const AesBatch batch(run);
  const auto messages = static_cast<std::uint32_t>(run.group.messages.size());
  run_serial_batch(run.device, run.stream, run.group.algorithm->mode.id,
                   SerialBatch{batch.views(), nullptr, batch.round_keys(), messages, batch.rounds()});
}

void run_serial_des(const GroupRun& run) {
  const std::size_t count = run.group.messages.size();
  const std::size_t lanes = (count + warp_len - 1) / warp_len * warp_len;
  Upload upload;
  const auto views = upload.reserve<MessageView>(count);
  const auto schedules = upload.reserve<uint2>(lanes * serial_des_rounds);
  upload.allocate(run.stream);
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    MessageView& view = upload.host(views)[i];
    view = view_of(message);
    view.start = to_block(message.iv, message.iv_len);
    place_des_schedule(upload.host(schedules), i, *message.key);
  }
  upload.send();
  run_serial_batch(run.device, run.stream, run.group.algorithm->mode.id,
                   SerialDesBatch{upload.device(views), upload.device(schedules), static_cast<std::uint32_t>(count),
                                  run.group.algorithm->cipher.key_len == 8 ? 16u : serial_des_rounds});
}

}  // namespace

void run_serial(const GroupRun& run) {
  is_aes(run.group.algorithm->cipher.id) ? run_serial_aes(run) : run_serial_des(run);
}

}  // namespace warpcipher::cuda::lane_table
