// SPDX-License-Identifier: Apache-2.0
// Prepares a group of a serial mode: views, and schedules in the order in which the lanes of a warp read them.
#include <algorithm>

#include "cipher/des.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/lane_table/serial.cuh"
#include "engine/cuda/memory.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// Round r of the schedule of message number i, for keys of type RoundKey.
template <class RoundKey>
RoundKey& round_key(RoundKey* schedules, std::size_t i, std::uint32_t r, std::uint32_t rounds) {
  return schedules[(i / warp_len * rounds + r) * warp_len + i % warp_len];
}

void place_aes_schedule(uint4* schedules, std::size_t i, const Key& key) {
  const std::uint32_t* words = aes_key_state(key).words(false);
  for (std::uint32_t r = 0; r < serial_aes_rounds; ++r) {
    round_key(schedules, i, r, serial_aes_rounds) =
        make_uint4(words[4 * r], words[4 * r + 1], words[4 * r + 2], words[4 * r + 3]);
  }
}

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
    round_key(schedules, i, r, serial_des_rounds) = pack_subkey(schedule->subkeys[r / 16][r % 16]);
  }
}

}  // namespace

void run_serial(const GroupRun& run) {
  const std::size_t count = run.group.messages.size();
  const std::size_t lanes = (count + warp_len - 1) / warp_len * warp_len;
  const CipherInfo& cipher = run.group.algorithm->cipher;
  const bool aes = is_aes(cipher.id);
  Upload upload;
  const auto views = upload.reserve<MessageView>(count);
  const auto aes_schedules = upload.reserve<uint4>(aes ? lanes * serial_aes_rounds : 0);
  const auto des_schedules = upload.reserve<uint2>(aes ? 0 : lanes * serial_des_rounds);
  upload.allocate(run.stream);
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    MessageView& view = upload.host(views)[i];
    view = view_of(message);
    view.start = to_block(message.iv, message.iv_len);
    if (aes) {
      place_aes_schedule(upload.host(aes_schedules), i, *message.key);
    } else {
      place_des_schedule(upload.host(des_schedules), i, *message.key);
    }
  }
  upload.send();
  const auto messages = static_cast<std::uint32_t>(count);
  if (aes) {
    launch_serial_aes(run, {upload.device(views), upload.device(aes_schedules), messages,
                            static_cast<std::uint32_t>(cipher.key_len / 4 + 6)});
  } else {
    launch_serial_des(run, {upload.device(views), upload.device(des_schedules), messages,
                            cipher.key_len == 8 ? 16u : serial_des_rounds});
  }
}

}  // namespace warpcipher::cuda::lane_table
